"""What a grave says about a page that brought its worker down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.limits import MIB
from trotline.rules import crash_reasons
from trotline.rules.crash_reasons import OUT_OF_MEMORY, cause


def why(code: int, hung: bool = False) -> str:
    return cause(code, hung=hung, parse=10.0, memory=1024 * MIB)


@pytest.mark.parametrize(
    ("code", "hung", "words"),
    [
        (-11, False, "crashed the worker (SIGSEGV)"),
        (-6, False, "crashed the worker (SIGABRT)"),
        (-9, True, "took longer than 10 s"),
        (-9, False, "did the machine run out of memory?"),
        (OUT_OF_MEMORY, False, "used more than 1,024 MiB"),
        (7, False, "ended the worker (exit code 7)"),
        (0, False, "ended the worker (exit code 0)"),
        (-250, False, "crashed the worker (signal 250)"),
    ],
)
def test_it_says_what_happened(code: int, hung: bool, words: str) -> None:
    assert words in why(code, hung)


@given(st.integers(-300, 300), st.booleans())
def test_every_reason_starts_alike_so_that_all_can_be_revived_at_once(code: int, hung: bool) -> None:
    assert why(code, hung).startswith("killed: reading its page ")


def test_a_robots_file_is_told_from_a_page() -> None:
    said = cause(-9, hung=True, parse=10.0, memory=MIB, robots=True)

    assert said == "killed: reading its robots.txt took longer than 10 s"


def test_no_two_endings_of_a_child_share_an_exit_code():
    codes = [
        crash_reasons.FINISHED,
        crash_reasons.FAILED,
        crash_reasons.STOPPED,
        crash_reasons.GAVE_UP,
        crash_reasons.OUT_OF_MEMORY,
    ]

    assert len({*codes, 0, 1, 2}) == len(codes) + 3

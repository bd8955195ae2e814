"""TOML of others is bounded before it is parsed."""

import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.bounded_toml import MOST_PARTS, parse

LONG = ".".join("a" * 20_000)
DEEP = ".".join("a" * (MOST_PARTS + 1))
TOO_MANY = f"a key has more than {MOST_PARTS} parts"


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG} = 1",
        f"[{LONG}]",
        f"[[{LONG}]]",
        f"x = {{ {LONG} = 1 }}",
        LONG.replace(".", " .\t") + " = 1",
        LONG.replace("a", '"a.b"') + " = 1",
        LONG.replace("a", "'a'") + " = 1",
        # After what a careless scanner takes for a string.
        f'x = """a""""\ny.{LONG} = 1',
        f'x = {{ y = """a"""", {LONG} = 1, z = "" }}',
        f"x = '''a'''''\n{LONG} = 1",
        f'# a quote in a comment: "\n{LONG} = 1 # "',
        f'{LONG} = "not closed',
    ],
)
def test_a_key_of_thousands_of_parts_is_refused_at_once(text: str) -> None:
    before = time.thread_time()
    with pytest.raises(ValueError, match=TOO_MANY):
        parse(text)
    assert time.thread_time() - before < 1


@pytest.mark.parametrize(
    "text",
    [
        f'x = "{LONG}"',
        f"x = '{LONG}'",
        f'x = """\n{LONG}\n"quoted" {LONG}"""',
        f"x = '''{LONG}'''",
        f"# {LONG}\nx = 1.5",
        f'x = "a \\" {LONG}"',
        "[" + ".".join(f"a{number}" for number in range(MOST_PARTS)) + "]\nb = 07:32:00.999",
    ],
)
def test_dots_in_strings_and_comments_are_no_parts_of_a_key(text: str) -> None:
    assert parse(text) == tomllib.loads(text)


@pytest.mark.parametrize("text", ["x = " + "[" * 5000 + "]" * 5000, "x = {" * 5000])
def test_values_that_are_nested_too_deeply_are_an_error_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse(text)


@given(
    st.lists(st.sampled_from(['"""', "'''", '"', "'", "\\", "#", "\n", "b", " = ", "{", "}", ",", "[", "]", "1", DEEP]))
)
def test_strings_are_told_from_keys_as_the_parser_does(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        expected = tomllib.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            parse(text)
        return
    if _depth(expected) > MOST_PARTS:
        with pytest.raises(ValueError, match=TOO_MANY):
            parse(text)
    else:
        assert parse(text) == expected


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict) + max(map(_depth, inner), default=0)

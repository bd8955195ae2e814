"""No field of a task goes unchecked, whichever way the check takes."""

import msgspec
import pytest

from trotline.model.task import Task
from trotline.rules import task_checks
from trotline.rules.task_checks import LARGEST_BODY, InvalidValue

INVALID = {
    str: "a\nb",
    type(None): "",
    int: 2**70,
    float: -1.0,
    bytes: bytes(LARGEST_BODY + 1),
    tuple: (0,),
    dict: {1: object()},
}
"""Of the same type as the default, which the fast path looks at first."""
PLAIN = Task(url="https://shop.example/", route="product")
ANY_TEXT = ("url", "parent", "first_url")


@pytest.mark.parametrize("field", [name for name in Task.__struct_fields__ if name not in ANY_TEXT])
def test_every_field_of_a_task_is_checked(field):
    invalid = INVALID[type(getattr(PLAIN, field))]
    with pytest.raises(InvalidValue, match=f"a task's {field} is "):
        task_checks.task(msgspec.structs.replace(PLAIN, **{field: invalid}))


def test_the_value_of_meta_that_cannot_be_stored_is_named_with_its_place():
    with pytest.raises(InvalidValue, match=r"\['rows'\]\[1\] is 10{20}; integers are from"):
        task_checks.meta({"name": "tea", "rows": [1, 10**20]})
    with pytest.raises(InvalidValue, match=r"in all$"):
        task_checks.meta({str(n): "x" * 1000 for n in range(2000)})


def test_a_plain_task_is_returned_as_it_is():
    assert task_checks.task(PLAIN) is PLAIN


@pytest.mark.parametrize(
    "name",
    ["Host", "CONTENT-LENGTH", "transfer-encoding", "Transfer-Encoding ", "connection", "Keep-Alive", "TE", "Trailer",
     "Upgrade", "Expect", "Proxy-Authorization", "proxy-connection"],
)  # fmt: skip
def test_headers_of_the_client_are_refused(name):
    with pytest.raises(InvalidValue, match="belongs to the HTTP client"):
        task_checks.task(msgspec.structs.replace(PLAIN, headers=(("accept", "*/*"), (name, "chunked"))))


def test_other_headers_pass():
    given = (
        ("Upgrade-Insecure-Requests", "1"),
        ("content-type", "a/b"),
        ("X-Host", "h"),
        ("authorization", "Bearer t"),
    )
    assert task_checks.headers(given) == given


@pytest.mark.parametrize(
    "given", [{"Authorization": "geheim\n"}, {"Host": "geheim"}, ["geheim"], {"Cookie": b"geheim"}]
)
def test_a_refused_header_is_named_without_values(given):
    with pytest.raises(InvalidValue) as refused:
        task_checks.checked("a task's headers", given, task_checks.headers)
    assert "geheim" not in str(refused.value)


def test_the_message_names_the_invalid_header():
    with pytest.raises(InvalidValue, match=r"line breaks, also for X-Token$"):
        task_checks.checked("a task's headers", {"X-Token": "geheim\n"}, task_checks.headers)
    with pytest.raises(InvalidValue, match=r"line breaks$"):
        task_checks.checked("a task's headers", {"X-Token: geheim\n": ""}, task_checks.headers)


@pytest.mark.parametrize(("text", "kept"), [("x" * 1_001, 1_000), ("ü" * 1_000, 500), ("😀" * 1_000, 250), ("ok", 2)])
def test_a_text_from_elsewhere_is_cut_to_what_a_name_may_have(text, kept):
    assert task_checks.cut_to_name(text) == text[:kept] == task_checks.name(task_checks.cut_to_name(text))

"""No field of a task goes unchecked, whichever way the check takes."""

import msgspec
import pytest

from trotline.model.task import Task
from trotline.rules import task_fields
from trotline.rules.task_fields import LARGEST_BODY, InvalidValue

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
        task_fields.task(msgspec.structs.replace(PLAIN, **{field: invalid}))


def test_a_plain_task_is_returned_as_it_is():
    assert task_fields.task(PLAIN) is PLAIN

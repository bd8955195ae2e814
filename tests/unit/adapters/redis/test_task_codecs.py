"""A field of a task is kept by every codec: each of them is made from the fields of Task, and so is this test."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from trotline.adapters.redis.task_codec import TaskCodec, template_of
from trotline.model import task_json
from trotline.model.task import Task

STARTED_AT = 1_750_000_000.0
FIELDS = {field.name: field for field in msgspec.structs.fields(Task)}
BASE = Task(url="https://shop.example/p/1", route="product", lane="shop.example", fingerprint=7, created_at=STARTED_AT)

SAMPLES: dict[Any, tuple[Any, ...]] = {
    str: ("other", "ö 漢", "x" * 70_000),
    str | None: ("other", ""),
    int: (1, 200, 70_000, -3),
    float: (STARTED_AT + 60.5, 12.25),
    bytes: (b"a=1", bytes(range(256))),
    tuple[tuple[str, str], ...]: ((("Accept", "text/html"), ("X", "")),),
    tuple[int, ...]: ((1, 2**48 - 1),),
    dict[str, Any]: ({"page": 3, "deep": {"list": [1, None, "two"]}},),
}
"""By the type of a field: values that are not its default."""


def through_bytes(task: Task) -> Task:
    return task_json.decode(task_json.encode(task))


def through_json(task: Task) -> Task:
    told = msgspec.json.decode(msgspec.json.encode(task_json.to_seed(task)))
    # Identity is the URL's there: the gate makes it anew.
    return msgspec.structs.replace(task_json.from_seed(told), fingerprint=task.fingerprint)


def through_redis(task: Task) -> Task:
    template = template_of(task)
    codec = TaskCodec(STARTED_AT)
    return codec.unpack(codec.pack(task, 5, template.scheme), task.lane, {5: template}.__getitem__)[0]


@pytest.mark.parametrize("codec", [through_bytes, through_json, through_redis])
@pytest.mark.parametrize("name", FIELDS)
def test_a_field_comes_back_as_it_was(name: str, codec: Callable[[Task], Task]) -> None:
    assert FIELDS[name].type in SAMPLES, f"add a sample for the type of {name}: {FIELDS[name].type}"
    for sample in SAMPLES[FIELDS[name].type]:
        task = msgspec.structs.replace(BASE, **{name: sample})

        assert getattr(codec(task), name) == sample, f"{codec.__name__} loses {name}"
        assert codec(task) == task


def test_a_field_has_one_letter_on_the_wire_and_it_is_its_own() -> None:
    letters = [field.encode_name for field in FIELDS.values()]

    assert [name for name, field in FIELDS.items() if len(field.encode_name) != 1] == []
    assert len(set(letters)) == len(letters)

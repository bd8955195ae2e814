"""Values that nobody expects, and every place in which a handler can give one."""

import dataclasses
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

from trotline import Follow, Page, Record, Secret, Task
from trotline.spider.task_drafts import Draft


class Mute:
    """Cannot even say what it is."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


class MuteText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


class Colour(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


@dataclasses.dataclass
class Thing:
    name: Any
    number: int = 0


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


def circle() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["itself"] = made
    return made


VALUES: dict[str, Callable[[], Any]] = {
    "a number": lambda: 5,
    "true": lambda: True,
    "false": lambda: False,
    "2^63": lambda: 2**63,
    "-2^63-1": lambda: -(2**63) - 1,
    "a number too long to write": lambda: 10**5000,
    "a fraction": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "bytes": lambda: b"\xff\x00bytes",
    "a number as text": lambda: "20",
    "half a character": lambda: "half \ud800 of one",
    "nul": lambda: "a\0b",
    "two lines": lambda: "a\r\nb: c",
    "empty": lambda: "",
    "long": lambda: "x" * 100_000,
    "nested": lambda: nested(300),
    "nested too deep": lambda: nested(5_000),
    "a circle": circle,
    "mute": Mute,
    "mute text": lambda: MuteText("text"),
    "a dataclass": lambda: Thing(name=1),
    "a dataclass of odd things": lambda: Thing(name=Mute(), number="no number"),  # type: ignore[arg-type]
    "an enum": lambda: Colour.RED,
    "a number's enum": lambda: Number.ONE,
    "decimal nan": lambda: Decimal("nan"),
    "decimal": lambda: Decimal("1.10"),
    "a time without a zone": lambda: datetime(2026, 1, 1),
    "a time": lambda: datetime(2020, 1, 1, tzinfo=UTC),
    "a day": lambda: date(2026, 1, 1),
    "a length of time": lambda: timedelta(days=10**8),
    "a set": lambda: {1, "a"},
    "a tuple": lambda: (1, 2, 3),
    "a list": lambda: [Mute(), None],
    "a generator": lambda: (n for n in range(3)),
    "a function": lambda: len,
    "a class": lambda: Thing,
    "a number as a name": lambda: {5: 6},
    "nothing as a name": lambda: {None: 1},
    "a dict of odd things": lambda: {"odd": Mute(), "half \ud800": b"x"},
    "complex": lambda: 1j,
    "an error": lambda: ValueError("a value"),
    "a uuid": lambda: uuid.UUID(int=1),
    "a secret": lambda: Secret("hidden"),
    "a task": lambda: Task(url="http://h.test/ok/1", route="page"),
    "none": lambda: None,
}

Place = Callable[[Page, Any], Any]
HERE = "http://h.test/child"


def _task_with(name: str) -> Place:
    return lambda page, odd: page.task("/child", **{name: odd})


def _own_task_with(name: str) -> Place:
    return lambda _, odd: Task(**{"url": HERE, "route": "page", name: odd})


def _record_with(name: str) -> Place:
    fields: dict[str, Any] = {"kind": "odd", "key": "k", "data": {"a": 1}, "url": HERE, "site": "s", "seen_at": 0.0}
    return lambda _, odd: Record(**{**fields, name: odd})


def _follow_with(name: str) -> Place:
    return lambda _, odd: Follow(**{"route": "page", "urls": [HERE], name: odd})


PLACES: dict[str, Place] = {
    "itself": lambda _, odd: odd,
    "a field": lambda _, odd: {"name": "odd", "odd": odd},
    "a field's name": lambda _, odd: {"name": "odd", odd: 1},
    "the key field": lambda _, odd: {"name": odd},
    "a dataclass's field": lambda _, odd: Thing(name=odd),
    "record: kind": lambda page, odd: page.record(odd, "k", {"a": 1}),
    "record: key": lambda page, odd: page.record("odd", odd, {"a": 1}),
    "record: data": lambda page, odd: page.record("odd", "k", odd),
    "record: a field": lambda page, odd: page.record("odd", "k", {"odd": odd}),
    "follow: query": lambda page, odd: page.follow(odd),
    "follow: to": lambda page, odd: page.follow("a", to=odd),
    "follow: priority": lambda page, odd: page.follow("a", priority=odd),
    "follow: meta": lambda page, odd: page.follow("a", meta=odd),
    "follow: in meta": lambda page, odd: page.follow("a", meta={"odd": odd}),
    "task: href": lambda page, odd: page.task(odd),
    "task: to": lambda page, odd: page.task("/child", to=odd),
    "task: in meta": lambda page, odd: page.task("/child", meta={"odd": odd}),
    "task: in headers": lambda page, odd: page.task("/child", headers={"x-odd": odd}),
    "task: in form": lambda page, odd: page.task("/child", form={"odd": odd}),
    **{f"task: {name}": _task_with(name) for name in Draft.__annotations__},
    **{f"Task: {name}": _own_task_with(name) for name in Task.__struct_fields__},
    **{f"Record: {name}": _record_with(name) for name in Record.__struct_fields__},
    **{f"Follow: {name}": _follow_with(name) for name in Follow.__struct_fields__},
    "Follow: a url": lambda _, odd: Follow(route="page", urls=[odd]),
}


def cases() -> Iterator[tuple[str, str]]:
    """Every place with every value."""
    for place in PLACES:
        for value in VALUES:
            yield place, value


def give(page: Page, place: str, value: str) -> Any:
    return PLACES[place](page, VALUES[value]())

"""Hooks of a spider: functions that see every request, page or record. Declared on the spider, run in that order.

    before_request -> (fetch, verdict) -> after_answer -> (blocked) -> handler -> record

A spider without hooks pays one look at an empty tuple per page and per record.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from trotline.errors import SpiderRefused

F = TypeVar("F", bound=Callable[..., Any])

BEFORE_REQUEST, AFTER_ANSWER, RECORD = "before_request", "after_answer", "record"
ON_START, ON_FINISH = "on_start", "on_finish"
LONGEST_REASON = 200
_MAY_BE_ASYNC = frozenset((BEFORE_REQUEST, ON_START, ON_FINISH))
_ARGUMENTS = {
    BEFORE_REQUEST: (("request",),),
    AFTER_ANSWER: (("page",),),
    RECORD: (("record", "page"), ("record",)),
    ON_START: ((), ("worker",)),
    ON_FINISH: ((), ("worker",)),
}
"""What a hook may take, the longest first."""


class Drop(msgspec.Struct, frozen=True):
    """What a hook returns to drop its request, page or record: counted and named in the summary."""

    why: str

    def __post_init__(self) -> None:
        if not isinstance(self.why, str) or not self.why.strip():
            raise ValueError(f'Drop({self.why!r}) says no reason; write Drop("no price")')

    @property
    def reason(self) -> str:
        """In one line, of a sane length."""
        return " ".join(self.why.split())[:LONGEST_REASON]


class WorkerHandle(msgspec.Struct, frozen=True):
    """What `on_start` and `on_finish` may take."""

    job: str
    """The id of the job."""
    name: str
    """Of the worker process; "try" in `trotline try`."""
    ended: str = ""
    """For `on_finish`: "finished"; "stopped" where pages are left (a signal, a limit, `trotline cancel`); "failed"."""


class Hook:
    """One function of the author, and what it is called for."""

    __slots__ = ("call", "function", "is_async", "kind", "name")

    def __init__(self, spider: str, kind: str, function: Callable[..., Any]) -> None:
        self.kind = kind
        self.function = function
        self.name = str(getattr(function, "__name__", "hook"))
        self.is_async = inspect.iscoroutinefunction(function)
        place = f"spider {spider!r}, @spider.{kind}"
        if not callable(function):
            raise SpiderRefused(f"{place}: {function!r} is not a function", hint=f"Put @spider.{kind} above one.")
        if (self.is_async and kind not in _MAY_BE_ASYNC) or inspect.isasyncgenfunction(function):
            raise SpiderRefused(f"{place}: {self.name} is async", hint="Write a plain function: def, not async def.")
        self.call = _adapted(place, kind, function)

    @property
    def title(self) -> str:
        """For reasons: `before_request hook sign`."""
        return f"{self.kind} hook {self.name}"


class Hooks:
    """The hooks of one spider, by kind, in the order of the code."""

    __slots__ = (AFTER_ANSWER, BEFORE_REQUEST, ON_FINISH, ON_START, RECORD)

    def __init__(self) -> None:
        self.before_request: tuple[Hook, ...] = ()
        self.after_answer: tuple[Hook, ...] = ()
        self.record: tuple[Hook, ...] = ()
        self.on_start: tuple[Hook, ...] = ()
        self.on_finish: tuple[Hook, ...] = ()

    def add(self, spider: str, kind: str, function: F) -> F:
        setattr(self, kind, (*getattr(self, kind), Hook(spider, kind, function)))
        return function


class Hooked:
    """The decorators of a spider."""

    name: str
    hooks: Hooks

    def before_request(self, function: F) -> F:
        """Before each request: it gets a `Request`, whose headers and body it may change. `Drop(why)`: not sent."""
        return self.hooks.add(self.name, BEFORE_REQUEST, function)

    def after_answer(self, function: F) -> F:
        """After each page that a handler is to read. Returns None, `Drop(why)`, or `page.with_body(...)`."""
        return self.hooks.add(self.name, AFTER_ANSWER, function)

    def record(self, function: F) -> F:
        """For each record that a handler gives, before it is validated: `def clean(record, page)`. Returns None (also
        if it changed the record), another record, several of them, or `Drop(why)`."""
        return self.hooks.add(self.name, RECORD, function)

    def on_start(self, function: F) -> F:
        """In each worker process, before its first page."""
        return self.hooks.add(self.name, ON_START, function)

    def on_finish(self, function: F) -> F:
        """In each worker process, after its last page was stored."""
        return self.hooks.add(self.name, ON_FINISH, function)


def _adapted(place: str, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called with all arguments that its kind may take."""
    signature, options = inspect.signature(function), _ARGUMENTS[kind]
    for names in options:
        try:
            signature.bind(*names)
        except TypeError:
            continue
        # The one with all arguments is called as it is.
        return function if len(names) == max(map(len, options)) else _with_first(function, len(names))
    takes = " or ".join(f"({', '.join(names)})" for names in _ARGUMENTS[kind])
    raise SpiderRefused(
        f"{place}: its function does not take {takes}", hint=f"Write: def name{takes.split(' or ')[0]}:"
    )


def _with_first(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    return lambda *given: function(*given[:number])

"""Tasks for another spider: made by a handler of one spider with a route of another, `other.product.task(url)`."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import msgspec

from trotline.model.task import Task

if TYPE_CHECKING:
    from trotline.spider.spider import Spider

_running: "ContextVar[Spider | None]" = ContextVar("running", default=None)
"""The spider whose handler is running: a draft of a route of another one is a handoff."""


class Handoff(msgspec.Struct, frozen=True):
    """A task draft for another spider."""

    spider: "Spider"
    task: Task


@contextmanager
def running(spider: "Spider") -> Iterator[None]:
    """While a handler of this spider runs."""
    token = _running.set(spider)
    try:
        yield
    finally:
        _running.reset(token)


def is_foreign(spider: "Spider") -> bool:
    """Does a handler of another spider run?"""
    found = _running.get()
    return found is not None and found.name != spider.name

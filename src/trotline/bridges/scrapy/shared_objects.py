"""One object in several requests of a page: each of them carries a copy, so items come out half filled."""

import logging
from collections.abc import Iterator
from typing import Any

from scrapy import Item, Request

from trotline.bridges.scrapy.request_tasks import Parent
from trotline.bridges.scrapy.visits import Visit
from trotline.rules import redaction
from trotline.rules.scrapy_meta import is_control
from trotline.rules.task_checks import shown

log = logging.getLogger("trotline.scrapy")

MOST = 1_000
"""Objects of one page that are compared: they are held until it is settled, as the id of a freed one is used again."""

_PLAIN = frozenset((str, int, float, bool, bytes, type(None)))


class SharedObjects:
    """Warns once for each callback. Only the values of `meta` and `cb_kwargs` are compared, not what is in them."""

    def __init__(self) -> None:
        self._warned: set[str] = set()
        self._started: dict[int, object] = {}
        """Of the requests of `start()`."""

    def look(self, request: Request, parent: Parent) -> None:
        """At a new request."""
        if _are_plain(request.meta) and _are_plain(request.cb_kwargs):
            # Nearly all requests, and a page may have hundreds.
            return
        callback = parent.lease.task.route if isinstance(parent, Visit) else "start"
        if callback in self._warned:
            return
        before = parent.given if isinstance(parent, Visit) else self._started
        found = list(_changeable(request))
        for name, value in found:
            if id(value) in before:
                self._warned.add(callback)
                _warn(callback, name, request)
                before.clear()
                return
        for _, value in found:
            if len(before) < MOST:
                before[id(value)] = value


def _are_plain(values: dict[Any, Any]) -> bool:
    return not values or _PLAIN.issuperset(map(type, values.values()))


def _changeable(request: Request) -> Iterator[tuple[str, Any]]:
    """Not those of Scrapy and its middlewares, which are settings, and may be shared."""
    for name, value in request.meta.items():
        if _may_change(value) and not (isinstance(name, str) and is_control(name)):
            yield f"meta[{shown(name)}]", value
    for name, value in request.cb_kwargs.items():
        if _may_change(value):
            yield f"cb_kwargs[{shown(name)}]", value


def _may_change(value: Any) -> bool:
    """Dicts, lists, sets, and items unless they are frozen."""
    return type(value).__hash__ is None or isinstance(value, Item)


def _warn(callback: str, name: str, request: Request) -> None:
    log.warning(
        "scrapy.shared_object %s yields several requests with the same object in %s (%s is the second). Each request "
        "carries a copy: what the callback of one puts into it is not in the others. An item that several pages fill "
        "must travel from page to page: yield the next request in the callback of the one before. If the callbacks "
        "only read it, nothing needs to change.",
        callback, name, redaction.url(request.url),
    )  # fmt: skip

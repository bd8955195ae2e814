"""Runs a handler on a page and collects its records and tasks."""

from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Coroutine, Iterable
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from trotline.model.harvest import Follow, Harvest
from trotline.model.lease import Reject
from trotline.model.record import Record
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules.task_checks import shown, type_of
from trotline.spider import hook_calls
from trotline.spider.code_location import line_of
from trotline.spider.downloads import read_file
from trotline.spider.handler_failed import HandlerFailed, is_cancelled, is_interrupt
from trotline.spider.handoffs import Handoff, running
from trotline.spider.page import Page
from trotline.spider.records import (
    InvalidRecord,
    converted,
    is_typed,
    key_of,
    named,
    own_data,
    own_key,
    plain,
    snake,
    text_of,
)

if TYPE_CHECKING:
    from trotline.spider.route import Route
    from trotline.spider.spider import Spider

_SINGLE = (dict, Task, Follow, Record, str, bytes)
_YIELD = "yield a dict, a dataclass, a Struct, a model, a task, or page.follow(...)"


def read(spider: "Spider", route: "Route", page: Page, *, site: str, seen_at: Moment) -> Harvest:
    """The harvest of a page by a sync handler: a generator, or a function that returns None, one item or many."""
    builder = HarvestBuilder(spider, route, page, site, seen_at)
    try:
        with running(spider):
            builder.source = given = route.handler(page.of(route))
            for item in _each(given):
                builder.put(item)
    except HandlerFailed:
        raise
    except BaseException as error:
        # BaseException: SystemExit, the panic of a Rust library, or a CancelledError without a cancellation.
        if is_interrupt(error):
            raise
        raise HandlerFailed.of(error, route.handler, builder.source) from error
    return builder.harvest()


async def read_async(spider: "Spider", route: "Route", page: Page, *, site: str, seen_at: Moment) -> Harvest:
    """The same for async generators and coroutine functions."""
    builder = HarvestBuilder(spider, route, page, site, seen_at)
    try:
        with running(spider):
            builder.source = given = route.handler(page.of(route))
            if isinstance(given, AsyncIterable):
                async for item in given:
                    builder.put(item)
            else:
                for item in _each(await given if isinstance(given, Awaitable) else given):
                    builder.put(item)
    except (GeneratorExit, HandlerFailed):
        raise
    except BaseException as error:
        if is_interrupt(error) or is_cancelled():
            raise
        raise HandlerFailed.of(error, route.handler, builder.source) from error
    return builder.harvest()


def _each(given: Any) -> Iterable[Any]:
    if type(given) is GeneratorType:
        return given
    if given is None:
        return ()
    if isinstance(given, Coroutine | AsyncIterable):
        if isinstance(given, Coroutine):
            given.close()
        raise TypeError("the handler returned an awaitable; define it with async def")
    if isinstance(given, _SINGLE) or is_typed(given) or not isinstance(given, Iterable):
        return (given,)
    return given


class HarvestBuilder:
    """Records and tasks of one page so far."""

    def __init__(self, spider: "Spider", route: "Route", page: Page, site: str, seen_at: Moment) -> None:
        self._spider = spider
        self._route = route
        self._page = page
        self._site = site
        self._seen_at = seen_at
        self._records: list[Record] = []
        self._tasks: list[Task] = []
        self._follows: list[Follow] = []
        self._rejects: list[Reject] = []
        self._handoffs: list[Handoff] = []
        self._counts: dict[str, int] = {}
        # Of the author's own handlers: a hook for products does not expect the record of a picture.
        self._hooks = () if route.handler is read_file else spider.hooks.record
        self._dropped: Counter[str] = Counter()
        self.source: object = None
        """The handler's return value: a generator knows its current line."""

    def put(self, item: Any) -> None:
        if item is None:
            return
        kind = type(item)
        if kind is Task:
            self._check_route(item.route)
            self._tasks.append(item)
        elif kind is Follow:
            self._check_route(item.route)
            self._follows.append(item)
        elif kind is Handoff:
            self._handoffs.append(item)
        elif self._hooks:
            for one in hook_calls.records(self._hooks, item, self._page, self._drop):
                self._put_final(one)
        else:
            self._put_final(item)

    def _put_final(self, item: Any) -> None:
        if type(item) is Record:
            self._put_explicit(item)
        else:
            self._put_record(item)

    def _drop(self, why: str) -> None:
        self._dropped[why] += 1

    def harvest(self) -> Harvest:
        return Harvest(
            records=self._records,
            tasks=self._tasks,
            follows=self._follows,
            rejects=self._rejects,
            dropped=dict(self._dropped) if self._dropped else {},
            handoffs=self._handoffs,
        )

    def _check_route(self, name: str) -> None:
        if not isinstance(name, str) or name not in self._spider.routes:
            known = ", ".join(self._spider.routes)
            raise LookupError(f"spider {self._spider.name!r} has no route {shown(name)}; it has {known}")

    def _put_explicit(self, record: Record) -> None:
        try:
            # Always the lease's time: a stale worker's record must lose to a newer one.
            filled = Record(
                kind=named("kind", record.kind),
                key=own_key(record.key),
                data=plain(own_data(record.data)),
                url=named("url", record.url or self._page.url),
                site=named("site", record.site or self._site),
                seen_at=self._seen_at,
            )
        except InvalidRecord as error:
            kind = record.kind if isinstance(record.kind, str) and record.kind else self._route.name
            self._reject(kind, InvalidRecord(f"{error}, at {line_of(self.source, self._route.handler)}"), record.data)
        else:
            self._records.append(filled)

    def _put_record(self, item: Any) -> None:
        route = self._route
        kind = route.name
        given = item
        try:
            if isinstance(item, dict):
                if route.model is not None:
                    kind = snake(route.model.__name__)
            elif is_typed(item) and not isinstance(item, type):
                kind = snake(type(item).__name__)
            else:
                raise InvalidRecord(f"{type_of(item)} is neither record nor task; {_YIELD}")
            # Counted before it is checked: one invalid record must not shift the keys of the next ones.
            index = self._next_index(kind)
            if route.model is not None and isinstance(item, dict):
                item = converted(item, route.model)
            data = plain(item)
            key = f"{self._page.task_id}:{index}" if route.key is None else key_of(item, data, route.key)
        except InvalidRecord as error:
            self._reject(kind, error, given)
            return
        self._records.append(
            Record(kind=kind, key=key, data=data, url=self._page.url, site=self._site, seen_at=self._seen_at)
        )

    def _next_index(self, kind: str) -> int:
        """The record's index among those of its kind: stable when the page is read again."""
        index = self._counts.get(kind, 0)
        self._counts[kind] = index + 1
        return index

    def _reject(self, kind: str, error: InvalidRecord, item: Any) -> None:
        self._rejects.append(Reject(kind, str(error), text_of(item)))

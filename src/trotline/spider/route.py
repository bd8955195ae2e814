"""A route: one page handler. An object, so that `product.task(url)` is checked by the editor and survives renaming."""

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Unpack

from trotline.errors import SpiderRefused
from trotline.model.client_kind import Client
from trotline.model.route_request import NO_COOKIES, RouteRequest
from trotline.model.task import NORMAL, Task
from trotline.rules.archive_choice import ArchiveChoice
from trotline.spider.handoffs import Handoff, is_foreign
from trotline.spider.page import Page
from trotline.spider.seeds import Seeds
from trotline.spider.task_drafts import Draft, draft

if TYPE_CHECKING:
    from trotline.spider.spider import Spider

Yield = Any
"""What a handler may yield: dict, dataclass, msgspec.Struct, pydantic model, Record, Task, Follow or None."""
Handler = Callable[[Page], Iterable[Yield] | AsyncIterable[Yield] | Awaitable[Yield] | Yield]
Key = str | tuple[str, ...] | Callable[[Any], Any]
"""The identity of a record: a field, several fields, or a function of the record."""


class Route:
    """A name, a handler, and how its tasks and records are made."""

    __slots__ = (
        "_given",
        "archive",
        "buries_dropped",
        "client",
        "conditional",
        "handler",
        "is_async",
        "key",
        "model",
        "name",
        "pool",
        "priority",
        "request",
        "seeds",
        "spider",
        "status",
    )

    def __init__(
        self,
        spider: "Spider",
        handler: Handler,
        *,
        name: str,
        seeds: tuple[Seeds, ...] = (),
        key: Key | None = None,
        model: type | None = None,
        priority: int = NORMAL,
        status: frozenset[int] = frozenset(),
        conditional: bool = False,
        pool: str = "",
        client: Client = Client.PLAIN,
        request: RouteRequest | None = None,
        archive: ArchiveChoice | None = None,
    ) -> None:
        self.spider = spider
        self.handler = handler
        self.name = name
        self.seeds = seeds
        self.key = key
        self.model = model
        self.priority = priority
        self.status = status
        """Statuses besides 2xx that the handler gets."""
        self.conditional = conditional
        """Use conditional requests (ETag, Last-Modified)."""
        self.pool = pool or spider.pool
        """The proxy pool of the route's tasks."""
        self.client = client
        """The HTTP client of the route's tasks."""
        self.request = request
        """Headers and cookies of the route's own; None: those of the spider."""
        self.archive = spider.archive if archive is None else archive
        """Which of its pages are archived."""
        self.buries_dropped = False
        """True: pages that are dropped (robots.txt, content type) are dead, with their URL, and not only counted."""
        self.is_async = _is_async(handler)
        self._given: dict[str, Any] = {}
        """Defaults of the route's tasks that differ from a task's own."""
        if priority != NORMAL:
            self._given["priority"] = priority
        if spider.retries != 3:
            self._given["retries"] = spider.retries
        if self.pool:
            self._given["pool"] = self.pool
        _check_handler(self)

    def task(self, url: str, **fields: Unpack[Draft]) -> Task:
        """A task of this route for an absolute URL; `page.task()` takes relative ones.

        In a handler of another spider it is for the job of this one (`handoffs`).
        """
        if fields.get("session") and not self.keeps_cookies:
            raise ValueError(f"session has no effect: {self.name} keeps no cookies (cookies=False)")
        made = draft(url, self.name, {**self._given, **fields} if self._given else fields)
        if is_foreign(self.spider):
            handoff: Any = Handoff(self.spider, made)
            made = handoff
        return made

    @property
    def keeps_cookies(self) -> bool:
        return self.spider.keeps_cookies and (self.request is None or self.request.jar != NO_COOKIES)

    @property
    def is_listing(self) -> bool:
        """It only leads to other pages: it declares no record (`key`, `model`), another route does."""
        return not self._declares_records and any(one._declares_records for one in self.spider.routes.values())

    @property
    def _declares_records(self) -> bool:
        return self.key is not None or self.model is not None

    def seed_defaults(self) -> dict[str, Any]:
        """Defaults for a seed's JSON object."""
        return {
            "job_type": self.name,
            "max_retries": self.spider.retries,
            "proxy_pool": self.pool,
            "priority": self.priority,
        }

    def __call__(self, page: Page) -> Any:
        """Call the handler, without collecting its records."""
        return self.handler(page)

    def __repr__(self) -> str:
        return f"<Route {self.spider.name}.{self.name}>"


def _is_async(handler: Any) -> bool:
    """Also for decorated functions and callable objects."""
    inner = inspect.unwrap(handler) if callable(handler) else handler
    functions = (inner, getattr(inner, "__call__", None))  # noqa: B004
    return any(inspect.isasyncgenfunction(one) or inspect.iscoroutinefunction(one) for one in functions)


def _check_handler(route: Route) -> None:
    place = f"spider {route.spider.name!r}, route {route.name!r}"
    if not callable(route.handler):
        raise SpiderRefused(f"{place}: {route.handler!r} is not a function", hint="Put @spider.page above a function.")
    try:
        inspect.signature(route.handler).bind(None)
    except TypeError as error:
        raise SpiderRefused(
            f"{place}: its handler cannot be called with one page ({error})", hint="Write: def handler(page: Page): ..."
        ) from error

"""A handler on a saved page, without a network."""

import asyncio
import threading
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import msgspec

from trotline.model.answer import Answer
from trotline.model.harvest import Harvest
from trotline.model.task import Task
from trotline.rules import urls
from trotline.spider import hook_calls
from trotline.spider.harvest import read, read_async
from trotline.spider.page import Page
from trotline.spider.route import Route
from trotline.spider.task_drafts import Draft

_MARKUP = ("<", "{", "[")


def visit(
    route: Route,
    page: str | bytes | PathLike[str],
    url: str = "https://example.com/",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    meta: dict[str, Any] | None = None,
    *,
    session: str = "",
    site: str = "",
) -> Harvest:
    """What `route` harvests from a page: a file's path (relative to where the tests run), its HTML, or its bytes.

    `meta`, `session` and `site` are what the handler reads as `page.meta`, `page.session` and `page.site`; the site is
    the spider's name by default.
    `harvest.tasks` has every task that the page leads to, those of `page.follow()` included. A handler that raises
    raises HandlerFailed here, with the author's own error as its cause.
    """
    spider = route.spider
    task = _task(route, url, meta=meta or {}, session=session, site=site or spider.name)
    pairs = tuple((name.lower(), value) for name, value in (headers or {}).items())
    seen = Page(task, Answer(url=url, status=status, headers=pairs, body=_body(page)))
    if spider.hooks.after_answer:
        hooked = hook_calls.after_answer(spider.hooks.after_answer, seen)
        if isinstance(hooked, str):
            return Harvest(dropped={hooked: 1})
        seen = hooked
    if route.is_async:
        harvest = _run(read_async(spider, route, seen, site=task.site, seen_at=0.0))
    else:
        harvest = read(spider, route, seen, site=task.site, seen_at=0.0)
    return _with_follows(route, harvest)


def _task(route: Route, url: str, **fields: Unpack[Draft]) -> Task:
    """As the gate would have admitted it: records without a key get the same names as in a crawl."""
    task = route.task(url, **fields)
    address = urls.read(url, route.spider.urls or urls.DEFAULTS)
    if isinstance(address, urls.Refusal):
        raise ValueError(f"{url!r} cannot be visited: {address.why}")
    identity = urls.task_identity(task, address)
    return msgspec.structs.replace(task, fingerprint=urls.fingerprint(route.name, identity), lane=address.lane)


def _body(page: str | bytes | PathLike[str]) -> bytes:
    if isinstance(page, bytes):
        return page
    if isinstance(page, str) and ("\n" in page or not page.strip() or page.lstrip().startswith(_MARKUP)):
        return page.encode()
    return Path(page).read_bytes()


def _run(reading: Any) -> Harvest:
    """To its end, also when the test itself runs in an event loop: a second thread has none yet."""
    ended: list[Harvest | BaseException] = []

    def run() -> None:
        try:
            ended.append(asyncio.run(reading))
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    [end] = ended
    if isinstance(end, BaseException):
        raise end
    return end


def _with_follows(route: Route, harvest: Harvest) -> Harvest:
    routes = route.spider.routes
    followed = [
        routes[follow.route].task(
            url, priority=follow.priority, meta=follow.meta, pool=follow.pool or routes[follow.route].pool
        )
        for follow in harvest.follows
        for url in follow.urls
        if url.startswith(("http://", "https://"))
    ]
    return msgspec.structs.replace(harvest, tasks=[*harvest.tasks, *followed])

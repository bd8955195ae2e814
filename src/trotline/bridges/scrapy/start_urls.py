"""Start URLs that other programs write: an inbox, whose entries the spider turns into requests."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from scrapy import FormRequest, Request

from trotline.bridges.scrapy.pools import POOL
from trotline.bridges.scrapy.request_codec import ACCOUNT, LOGIN
from trotline.config import backends
from trotline.errors import FrontierError, FrontierGone
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.inbox import InboxBatch
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.frontier import Frontier
from trotline.ports.inbox import Inbox
from trotline.rules.tagged_json import NotData

log = logging.getLogger("trotline.scrapy")

LOOK_EVERY: Seconds = 0.5
"""How often an empty inbox is looked at."""
_AGAIN: Seconds = 2.0
_LONGEST_REASON = 300
_NOT_OF_ENTRIES = frozenset(("proxy", POOL, ACCOUNT, LOGIN))

Tasks = tuple[list[Task], dict[int, str]]
"""Of a batch: the tasks, and the place and reason of entries that gave none."""


def request_of(data: bytes, encoding: str = "utf-8") -> Request | list[Request]:
    """The request of an entry, as scrapy-redis makes it: a URL, or a JSON object with `url`, `method` and `meta`, whose
    other fields are form data. ValueError says why there is none: who writes entries reads no files of this machine,
    and chooses neither a proxy nor an account."""
    text = data.decode(encoding).strip()
    if not text.startswith("{"):
        return Request(_of_the_web(text), dont_filter=True)
    fields = json.loads(text)
    url, meta = fields.pop("url", None), fields.pop("meta", {})
    method = str(fields.pop("method", "GET")).upper()
    if not isinstance(url, str) or not isinstance(meta, dict):
        raise ValueError("the entry has no url, or a meta that is not an object")
    if named := sorted(_NOT_OF_ENTRIES & meta.keys()):
        raise ValueError(f"meta[{named[0]!r}] is set by the spider only: by make_request_from_data, for all entries")
    form = {name: value if isinstance(value, list) else str(value) for name, value in fields.items()}
    return FormRequest(_of_the_web(url), dont_filter=True, method=method, formdata=form, meta=meta)


def _of_the_web(url: str) -> str:
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError("the URL of an entry begins with http:// or https://")
    return url


def tasks_of(entries: Iterable[bytes], make: Callable[[bytes], Any], task: Callable[[Request], Task]) -> Tasks:
    """Runs in Scrapy's thread: `make` is the spider's."""
    found: list[Task] = []
    parked: dict[int, str] = {}
    for place, entry in enumerate(entries):
        try:
            made = make(entry)
            requests = [made] if isinstance(made, Request) else list(made or ())
            if not requests:
                raise ValueError("the spider made no request of it")
            found.extend([task(request) for request in requests])
        except (ValueError, TypeError, LookupError, NotData) as error:
            parked[place] = f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
    return found, parked


class StartUrls:
    """Reads the inbox in the client's loop. An entry is removed when its request is with the frontier."""

    def __init__(self, url: str, back: Callable[[Callable[[], None]], object], read: Callable[[Any], Tasks]) -> None:
        self._inbox: Inbox = backends.open_inbox(url)
        self._back = back
        self._read = read
        self._outage = OutageLog(log, "inbox.unreachable")
        self._empty_since: Seconds | None = None

    async def run(self, frontier: Frontier) -> None:
        """Until the inbox was empty for the time that its URL says; without one, for ever."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                try:
                    batch = await self._inbox.take()
                    self._outage.report("")
                except FrontierGone:
                    raise
                except FrontierError as error:
                    self._empty_since = None
                    self._outage.report(error.what)
                    await asyncio.sleep(_AGAIN)
                    continue
                if batch is not None:
                    self._empty_since = None
                    await self._pass_on(batch, frontier)
                    continue
                self._empty_since = clock() if self._empty_since is None else self._empty_since
                if self._inbox.idle is not None and clock() - self._empty_since >= self._inbox.idle:
                    return
                await asyncio.sleep(LOOK_EVERY)
        finally:
            await self._inbox.close()

    async def _pass_on(self, batch: InboxBatch, frontier: Frontier) -> None:
        answer: Future[Tasks] = Future()

        def read() -> None:
            try:
                answer.set_result(self._read(batch.entries))
            except BaseException as error:
                # A spider's code may raise anything; the loop that waits must hear of it.
                answer.set_exception(error)

        self._back(read)
        tasks, parked = await asyncio.wrap_future(answer)
        if tasks:
            await until_reachable(lambda: frontier.put(tasks), self._outage.report)
        for place, why in parked.items():
            log.warning("inbox.parked entry %d of a batch of %s: %s", place, self._inbox.name, why)
        await until_reachable(lambda: self._inbox.done(batch, parked), self._outage.report)

"""Start URLs that other programs write: an inbox, whose entries the spider turns into requests."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from scrapy import FormRequest, Request

from trotline.config import backends
from trotline.errors import FrontierError, FrontierGone
from trotline.frontier.gate_batch import Numbered
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.put_one_by_one import put_each, refusal
from trotline.frontier.reconnect import until_reachable
from trotline.model.inbox import InboxBatch
from trotline.model.lease import Admission
from trotline.model.record_row import whole
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.frontier import Frontier
from trotline.ports.inbox import Inbox
from trotline.rules import redaction
from trotline.rules.counted_reasons import count
from trotline.rules.scrapy_meta import is_control, way_out
from trotline.rules.task_checks import said

log = logging.getLogger("trotline.scrapy")

LOOK_EVERY: Seconds = 0.5
"""How often an empty inbox is looked at."""
_AGAIN: Seconds = 2.0
_LONGEST_REASON = 300
_LONGEST_KEY = 60

Tasks = tuple[list[Numbered], dict[int, str]]
"""Of a batch: the tasks with the place of their entry, and the place and reason of entries that gave none."""


def request_of(data: bytes, encoding: str = "utf-8", *, trusted: bool = False) -> Request | list[Request]:
    """The request of an entry, as scrapy-redis makes it: a URL, or a JSON object with `url`, `method` and `meta`, whose
    other fields are form data. ValueError says why there is none: who writes entries reads no files of this machine,
    and chooses neither a proxy nor an account. `trusted`: `meta` may have keys that control Scrapy."""
    text = data.decode(encoding).strip()
    if not text.startswith("{"):
        return Request(of_the_web(text), dont_filter=True)
    fields = fields_of(text)
    url, meta = fields.pop("url", None), fields.pop("meta", None)
    meta = {} if meta is None else meta
    method = str(fields.pop("method", "GET")).upper()
    if not isinstance(url, str) or not isinstance(meta, dict):
        raise ValueError("the entry has no url, or a meta that is not an object")
    check_meta(meta, trusted=trusted)
    form = {name: value if isinstance(value, list) else str(value) for name, value in fields.items()}
    return FormRequest(of_the_web(url), dont_filter=True, method=method, formdata=form, meta=meta)


def fields_of(text: str) -> dict[str, Any]:
    """Of the JSON object of an entry."""
    try:
        return dict(json.loads(text))
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def check_meta(meta: Iterable[str], *, trusted: bool) -> None:
    if key := way_out(meta):
        raise ValueError(f"meta[{key!r}] is set by the spider only: by make_request_from_data, for all entries")
    if not trusted and (named := sorted(filter(is_control, meta))):
        raise ValueError(
            f"meta[{named[0][:_LONGEST_KEY]!r}] controls Scrapy, and is for trusted producers only: leave it out, set "
            "it in make_request_from_data, or write trust=yes in the inbox's URL"
        )


def of_the_web(url: str) -> str:
    """The URL; ValueError: it is another one."""
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError("the URL of an entry begins with http:// or https://")
    return url


def tasks_of(entries: Iterable[bytes], make: Callable[[bytes], Any], task: Callable[[Request], Task]) -> Tasks:
    """Runs in Scrapy's thread: `make` is the spider's."""
    found: list[Numbered] = []
    parked: dict[int, str] = {}
    for place, entry in enumerate(entries):
        try:
            made = make(entry)
            requests = [made] if isinstance(made, Request) else list(made or ())
            if not requests:
                raise ValueError("the spider made no request of it")
            found.extend([(place, task(request)) for request in requests])
        except Exception as error:
            # Of the spider's code as well: an entry must not hold up the others.
            parked[place] = f"{type(error).__name__}: {said(error)}"
    return found, parked


class StartUrls:
    """Reads the inbox in the client's loop. An entry is removed when its request is with the frontier."""

    def __init__(self, url: str, back: Callable[[Callable[[], None]], object], read: Callable[[Any], Tasks]) -> None:
        self._inbox: Inbox = backends.open_inbox(url)
        self._back = back
        self._read = read
        self._outage = OutageLog(log, "inbox.unreachable")
        self._empty_since: Seconds | None = None
        self._parked: Counter[str] = Counter()

    @property
    def trusted(self) -> bool:
        return self._inbox.trusted

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
        parked |= await self._put(tasks, frontier)
        shown = {place: redaction.text(whole(why))[:_LONGEST_REASON] for place, why in sorted(parked.items())}
        for why in shown.values():
            if count(self._parked, why):
                log.warning("inbox.parked %s: an entry was parked: %s", self._inbox.name, why)
        await until_reachable(lambda: self._inbox.done(batch, shown), self._outage.report)

    async def _put(self, tasks: Sequence[Numbered], frontier: Frontier) -> dict[int, str]:
        """The place of each entry that cannot be stored, and why."""

        async def put(some: Sequence[Task]) -> list[Admission]:
            return await until_reachable(lambda: frontier.put(some), self._outage.report)

        answers = await put_each(put, [task for _, task in tasks])
        return {place: why for (place, _), answer in zip(tasks, answers, strict=True) if (why := refusal(answer))}

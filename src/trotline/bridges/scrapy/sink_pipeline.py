"""A pipeline that writes items with our sinks: one row per key, however often a page is visited.

ITEM_PIPELINES = {"trotline.bridges.scrapy.SinkPipeline": 900}
TROTLINE_SINK = "postgresql://localhost/shop"
TROTLINE_KEYS = {"Product": "sku"}
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping
from typing import Any, Self, cast

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.utils.defer import maybe_deferred_to_future

from trotline.bridges.scrapy import held_back
from trotline.bridges.scrapy.client_thread import ClientThread, into_this_thread
from trotline.bridges.scrapy.held_back import SINK, HeldBack
from trotline.config import backends
from trotline.config.backend_urls import sink_url
from trotline.errors import SettingsError, SinkRejects, SinkUnreachable
from trotline.frontier.outage_log import OutageLog
from trotline.model.record import Record
from trotline.model.record_row import Unstorable, json_text
from trotline.model.time import Seconds
from trotline.ports.sink import Sink

log = logging.getLogger("trotline.scrapy")

GATHER: Seconds = 0.05
"""How long items wait for others of the same batch."""
BATCH = 500
_AGAIN: Seconds = 1.0
_ITEM = "item"
"""The kind of items that are plain dicts."""

_Waiting = tuple[Record, "asyncio.Future[str]"]


class SinkPipeline:
    """An item has passed it when its row is stored. So a page is settled only then."""

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        given = settings.get("TROTLINE_SINK")
        if not given:
            raise SettingsError(
                "SinkPipeline is in ITEM_PIPELINES, and the setting TROTLINE_SINK names no sink",
                hint=f'For example TROTLINE_SINK = "sqlite:shop.db". It is written as {backends.sink_forms()}',
            )
        try:
            self._url = sink_url(str(given))
        except ValueError as error:
            raise SettingsError(f"the setting TROTLINE_SINK: {error}") from error
        self._keys: Mapping[str, str] = settings.getdict("TROTLINE_KEYS")
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def open_spider(self, spider: Any = None) -> None:
        self._site = cast(Any, self._crawler.spider).name
        self._thread = ClientThread(into_this_thread())
        self._writer = _Writer(backends.open_sink(self._url), held_back.of(self._crawler))
        await maybe_deferred_to_future(self._thread.deferred(self._writer.open()))

    async def process_item(self, item: Any, spider: Any = None) -> Any:
        """DropItem: its values cannot be stored, or the sink refuses it."""
        record = self._record(item)
        why = await maybe_deferred_to_future(self._thread.deferred(self._writer.write(record)))
        if why:
            raise DropItem(f"the sink refuses it: {why}")
        return item

    async def close_spider(self, spider: Any = None) -> None:
        await maybe_deferred_to_future(self._thread.deferred(self._writer.close()))
        self._thread.stop()

    def _record(self, item: Any) -> Record:
        data = ItemAdapter(item).asdict()
        kind = _ITEM if isinstance(item, dict) else type(item).__name__
        field = self._keys.get(kind) or self._keys.get("*")
        if field is not None and data.get(field) in (None, ""):
            raise DropItem(f"its field {field!r}, which is its key (TROTLINE_KEYS), is empty")
        try:
            key = str(data[field]) if field else hashlib.sha256(json_text(data).encode()).hexdigest()[:32]
        except Unstorable as error:
            raise DropItem(f"it cannot be stored: {error}") from error
        url = data.get("url")
        return Record(
            kind=kind,
            key=key,
            data=data,
            url=url if isinstance(url, str) else "",
            site=self._site,
            seen_at=time.time(),
        )


class _Writer:
    """In the loop of the thread: one batch at a time, for all items that wait."""

    def __init__(self, sink: Sink, held: HeldBack) -> None:
        self._sink = sink
        self._held = held
        self._waiting: list[_Waiting] = []
        self._sending: asyncio.Task[None] | None = None
        self._outage = OutageLog(log, "sink.unreachable")

    async def open(self) -> None:
        await self._sink.open()

    async def write(self, record: Record) -> str:
        """When it is stored; else why it is refused."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, answer))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
        return await answer

    async def close(self) -> None:
        if self._sending is not None:
            await self._sending
        await self._sink.finish()
        await self._sink.close()

    async def _send_all(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER)
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            try:
                await self._store(batch)
            except Exception as error:
                # The pipelines that wait get it, and their pages are buried with it.
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)

    async def _store(self, batch: list[_Waiting]) -> None:
        while batch:
            try:
                await self._sink.write([record for record, _ in batch])
            except SinkRejects as error:
                batch = _without(batch, error.rejected)
                continue
            except SinkUnreachable as error:
                self._outage.report(error.what)
                self._held.report(SINK, f"sink is unreachable: {error.what}")
                await asyncio.sleep(_AGAIN)
                continue
            self._outage.report("")
            self._held.report(SINK, "")
            for _, answer in batch:
                answer.set_result("")
            return


def _without(batch: list[_Waiting], rejected: Mapping[int, str]) -> list[_Waiting]:
    """Those that are not rejected; the others get the reason."""
    for place, why in rejected.items():
        batch[place][1].set_result(why or "it cannot be stored")
    return [one for place, one in enumerate(batch) if place not in rejected]

"""Feeds of Scrapy: the items of a page are in their files before the page is settled."""

from collections.abc import Callable
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from twisted.python.failure import Failure

from trotline.rules import redaction


class Feeds:
    def __init__(self, crawler: Crawler, on_lost: Callable[[Any, Failure], None]) -> None:
        """`on_lost`: an item of this response could not be written, and is in no buffer. Scrapy itself only logs it."""
        self._exporter = crawler.get_extension(FeedExporter)
        self._on_lost = on_lost
        if self._exporter is not None:
            crawler.signals.disconnect(self._exporter.item_scraped, signals.item_scraped)
            crawler.signals.connect(self._export, signals.item_scraped)

    def flush(self) -> str:
        """Items in a buffer would be lost with the process, and their pages would not be visited again.

        A feed that is uploaded at its end (S3, FTP) is a temporary file until then, which this does not save. Returns
        why the items could not be written; they are still in the buffer, and it may be called again. BrokenPipeError:
        they never can."""
        for slot in self._exporter.slots if self._exporter is not None else ():
            if slot.file is None or slot.file.closed:
                continue
            try:
                slot.file.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                return f"{redaction.url(slot.uri)}: {error}"
        return ""

    def _export(self, item: Any, spider: Spider, response: Any) -> None:
        assert self._exporter is not None  # noqa: S101 - for the type checker
        try:
            self._exporter.item_scraped(item, spider)
        except OSError as error:
            self._on_lost(response, Failure(error))  # type: ignore[no-untyped-call]
            raise

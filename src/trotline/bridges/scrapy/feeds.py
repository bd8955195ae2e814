"""Feeds of Scrapy: the items of a page are in their files before the page is settled."""

from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter


class Feeds:
    def __init__(self, crawler: Crawler) -> None:
        self._exporter = crawler.get_extension(FeedExporter)

    def flush(self) -> None:
        """Items in a buffer would be lost with the process, and their pages would not be visited again.

        A feed that is uploaded at its end (S3, FTP) is a temporary file until then, which this does not save. OSError:
        the items could not be written."""
        for slot in self._exporter.slots if self._exporter is not None else ():
            if slot.file is not None and not slot.file.closed:
                slot.file.flush()

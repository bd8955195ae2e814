"""What a Scrapy process waits for: shown by `watch`, `jobs` and `status`, as its heartbeat carries it."""

from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler

FEED = "feed"
SINK = "sink"
RESULTS = "results"
LEASES = "leases"


class HeldBack:
    """Set and read in any thread: each part is a text of its own."""

    def __init__(self) -> None:
        self._why = dict.fromkeys((FEED, SINK, RESULTS, LEASES), "")

    def report(self, part: str, why: str) -> None:
        """`why`: what this part waits for; empty when it goes on."""
        self._why[part] = why

    @property
    def text(self) -> str:
        return next((why for why in self._why.values() if why), "")

    @property
    def feed(self) -> str:
        """While a feed cannot be written, no new requests are begun."""
        return self._why[FEED]


_of_crawlers: WeakKeyDictionary[Crawler, HeldBack] = WeakKeyDictionary()


def of(crawler: Crawler) -> HeldBack:
    """The scheduler and the pipelines of a crawler share it."""
    return _of_crawlers.setdefault(crawler, HeldBack())

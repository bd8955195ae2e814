"""What the client's thread asks of Scrapy's engine, and how late Scrapy's thread hears of it."""

import time
from collections.abc import Callable
from typing import Any

from trotline.model.time import Seconds

_WEIGHT = 1 / 8
"""Of one measurement of the lag among those before it."""


class EngineLink:
    """Used by both threads: the client's calls `busy`, `notify` and `probe`, Scrapy's thread the rest."""

    def __init__(self, engine: Any, back: Callable[[Callable[[], None]], object], on_news: Callable[[], None]) -> None:
        """`back` runs a function in Scrapy's thread; `on_news` is called there after `notify`."""
        self._engine = engine
        self._back = back
        self._on_news = on_news
        self._notified = False
        self._probed_at: Seconds | None = None
        self._lag: Seconds = 0.0

    def busy(self) -> int | None:
        """Downloads under way; None while no more may be taken."""
        engine = self._engine
        slot = engine.scraper.slot
        if not engine.running or engine.paused or slot is None or slot.needs_backout():
            return None
        return len(engine.downloader.active)

    def notify(self) -> None:
        """Leases are ready, results were sent, or the job has ended."""
        if not self._notified:
            self._notified = True
            self._back(self._news)

    def probe(self) -> None:
        """Measure the lag. At regular times, not with `notify`: that comes when the thread has just become idle, and a
        process without any time to spare would seem to have some."""
        if self._probed_at is None:
            self._probed_at = time.monotonic()
            self._back(self._heard)

    @property
    def lag(self) -> Seconds:
        """How long Scrapy's thread takes to hear of something."""
        probed_at = self._probed_at
        return self._lag if probed_at is None else max(self._lag, time.monotonic() - probed_at)

    def looked(self) -> None:
        """Scrapy's thread looks for leases by itself: what comes after this is news."""
        self._notified = False

    def _news(self) -> None:
        self._notified = False
        self._on_news()
        if self._engine._slot is not None:
            self._engine._slot.nextcall.schedule()

    def _heard(self) -> None:
        if self._probed_at is not None:
            self._lag += (time.monotonic() - self._probed_at - self._lag) * _WEIGHT
            self._probed_at = None

"""How late Scrapy's thread hears of news is measured at regular times."""

import time
from collections.abc import Callable
from types import SimpleNamespace

from trotline.bridges.scrapy.engine_link import EngineLink


class Thread:
    """Scrapy's, which runs what it was given when the test says so."""

    def __init__(self) -> None:
        self.given: list[Callable[[], None]] = []
        self.heard = 0
        self.link = EngineLink(SimpleNamespace(_slot=None), self.given.append, self._news)

    def _news(self) -> None:
        self.heard += 1

    def run(self) -> None:
        waiting = self.given[:]
        self.given.clear()
        for one in waiting:
            one()


def test_a_thread_that_does_not_answer_is_late_before_it_answers() -> None:
    thread = Thread()
    thread.link.probe()
    time.sleep(0.02)
    assert thread.link.lag >= 0.02


def test_one_late_answer_among_quick_ones_is_not_a_lag() -> None:
    thread = Thread()
    thread.link.probe()
    time.sleep(0.02)
    thread.run()
    assert 0.0 < thread.link.lag < 0.02
    late = thread.link.lag
    for _ in range(20):
        thread.link.probe()
        thread.run()
    assert thread.link.lag < late / 2


def test_a_probe_that_is_not_answered_is_not_sent_again() -> None:
    thread = Thread()
    thread.link.probe()
    thread.link.probe()
    assert len(thread.given) == 1


def test_news_until_the_thread_looks_are_one_message() -> None:
    thread = Thread()
    thread.link.notify()
    thread.link.notify()
    thread.run()
    assert thread.heard == 1
    thread.link.notify()
    thread.link.looked()
    thread.link.notify()
    thread.run()
    assert thread.heard == 3

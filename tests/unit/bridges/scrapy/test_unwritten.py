"""Pages whose items are in the buffer of a feed that cannot be written: they wait, and are settled once."""

import io
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.extensions.feedexport import FeedExporter
from twisted.python.failure import Failure

from trotline.bridges.scrapy import unwritten
from trotline.bridges.scrapy.feeds import Feeds
from trotline.bridges.scrapy.held_back import FEED, SINK, HeldBack
from trotline.bridges.scrapy.unwritten import Unwritten
from trotline.bridges.scrapy.visits import Visit
from trotline.model.lease import Lease
from trotline.model.task import Task

FULL = "items.jsonl: [Errno 28] No space left on device"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unwritten, "AGAIN", 0.0)
    monkeypatch.setattr(unwritten, "AFTER_LOSS", 0.0)


class Disk:
    def __init__(self) -> None:
        self.why = ""
        self.flushes = 0

    def flush(self) -> str:
        self.flushes += 1
        return self.why


class Page:
    """A scene: pages that finish while the disk is full, or is not."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.held = HeldBack()
        self.settled: list[Visit] = []
        self.unwritten = Unwritten(self.held, self.disk.flush, self.settled.append)

    def finish(self) -> Visit:
        task = Task(url="https://shop.example/", route="parse")
        visit = Visit(Lease(task, 1, 0.0, 0.0, 0.0, 0.0), Request(task.url))
        self.unwritten.add(visit)
        return visit


def test_a_page_whose_items_are_written_is_settled_at_once() -> None:
    scene = Page()
    assert scene.settled == [scene.finish()]
    assert not scene.held.text


def test_pages_wait_while_the_disk_is_full_and_are_settled_once_when_it_has_room() -> None:
    scene = Page()
    scene.disk.why = FULL
    pages = [scene.finish(), scene.finish()]
    scene.unwritten.again()
    assert scene.settled == []
    assert scene.held.feed == f"feed cannot be written: {FULL}"

    scene.disk.why = ""
    scene.unwritten.again()
    scene.unwritten.again()
    assert scene.settled == pages
    assert scene.held.text == ""


def test_the_outage_is_logged_once_at_its_beginning_and_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scene = Page()
    scene.disk.why = FULL
    scene.finish()
    scene.finish()
    scene.unwritten.again()
    scene.disk.why = ""
    scene.unwritten.again()
    assert [line.getMessage().split()[0] for line in caplog.records] == ["feed.unwritable", "feed.unwritable:"]


def test_a_process_that_ends_before_settles_nothing_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    scene = Page()
    scene.disk.why = FULL
    scene.finish()
    scene.unwritten.close()
    assert scene.settled == []
    assert "1 page" in caplog.text
    assert "will be visited again" in caplog.text


def test_a_feed_that_is_full_is_named_before_the_sink() -> None:
    held = HeldBack()
    held.report(SINK, "sink is unreachable: x")
    assert (held.feed, held.text) == ("", "sink is unreachable: x")
    held.report(FEED, "feed cannot be written: y")
    assert held.text == "feed cannot be written: y"


class Exporter(FeedExporter):
    """With one feed, in a file."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.slots = [SimpleNamespace(file=file, uri="items.jsonl")]  # type: ignore[list-item]

    def item_scraped(self, item: Any, spider: Any) -> None:
        self.file.write(item)


class Signals:
    def disconnect(self, receiver: Any, signal: Any) -> None:
        self.before = receiver

    def connect(self, receiver: Any, signal: Any) -> None:
        self.receiver = receiver


def feeds(file: Any) -> tuple[Feeds, Signals, list[Failure]]:
    lost: list[Failure] = []
    exporter, heard = Exporter(file), Signals()
    crawler: Any = SimpleNamespace(get_extension=lambda kind: exporter, signals=heard)
    made = Feeds(crawler, lambda response, failure: lost.append(failure))
    assert heard.before == exporter.item_scraped
    return made, heard, lost


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is of Linux")
def test_an_item_in_the_buffer_of_a_full_disk_is_not_lost_and_one_that_has_no_place_there_is() -> None:
    file = io.BufferedWriter(io.FileIO("/dev/full", "wb"), 10)
    made, heard, lost = feeds(file)
    heard.receiver(b"x" * 8, spider=None, response=None)
    assert made.flush() == FULL
    assert lost == []
    with pytest.raises(OSError, match="No space left"):
        heard.receiver(b"y" * 8, spider=None, response=None)
    assert [type(failure.value) for failure in lost] == [OSError]
    file.raw.close()


def test_a_pipe_without_a_reader_is_not_waited_for() -> None:
    class Pipe(io.BytesIO):
        def flush(self) -> None:
            raise BrokenPipeError

    made, _, _ = feeds(Pipe())
    with pytest.raises(BrokenPipeError):
        made.flush()

"""The promises of an archive (A1 to A6), as tests that any archive can inherit:

    class TestMyArchive(ArchiveContract):
        @pytest.fixture
        def place(self, tmp_path):
            return lambda: MyArchive(tmp_path)

`place` gives a function that makes another archive object on the same, at first empty place, as another process would.
"""

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import pytest

from trotline.model.archive import (
    ArchiveDamage,
    ArchivedPage,
    ArchiveEntry,
    ArchiveQuery,
    ArchiveTidied,
    Capture,
    CaptureKind,
)
from trotline.ports.archive import Archive

Place = Callable[[], Archive]

NOON = 1_800_000_000.25
ALL = ArchiveQuery()
_PAGE = b"<html>" + b"a page of a shop " * 100 + b"</html>"


def capture(number: int = 1, *, at: float = NOON, body: bytes | None = None, **more: Any) -> Capture:
    """A response for tests; by default every number has a URL and a body of its own."""
    fields: dict[str, Any] = {
        "id": f"{number:032x}",
        "url": f"https://shop.example/p/{number}",
        "at": at + number,
        "job": "shop-1",
        "route": "product",
        "request_headers": (("user-agent", "Trotline"), ("authorization", "[hidden]")),
        "status": 200,
        "headers": (
            ("content-type", "text/html; charset=utf-8"),
            ("content-encoding", "gzip"),
            ("x-a", "ä"),
            ("x-a", "2"),
        ),
        "body": b"%d " % number + _PAGE if body is None else body,
        "address": "192.0.2.1",
        "about": {"site": "shop", "task": f"{number:016x}", "meta": {"from": "Grüße"}},
    }
    return Capture(**{**fields, **more})


def coded(number: int = 1, page: bytes = _PAGE, **more: Any) -> Capture:
    """A response whose body is kept as it came: gzip-coded."""
    return capture(number, body=gzip.compress(page, mtime=0), is_coded=True, **more)


async def found(archive: Archive, wanted: ArchiveQuery = ALL) -> list[ArchiveEntry]:
    return sorted([entry async for entry in archive.entries(wanted)], key=lambda entry: (entry.at, entry.id))


async def read(archive: Archive, wanted: ArchiveQuery = ALL) -> list[ArchivedPage]:
    return sorted([page async for page in archive.pages(wanted)], key=lambda page: (page.entry.at, page.entry.id))


class ArchiveContract:
    """A1 to A6. A subclass provides the fixture `place`."""

    pytestmark = pytest.mark.asyncio

    async def test_what_was_written_is_read_back(self, place: Place) -> None:
        """A3"""
        writer = place()
        await writer.open()
        await writer.write([capture(1)])
        [entry] = await found(place())
        page = await place().read(entry)
        made = capture(1)
        assert (page.answer.url, page.answer.status, page.answer.headers) == (made.url, 200, made.headers)
        assert page.answer.body == made.body
        assert page.answer.address == "192.0.2.1"
        assert (entry.at, entry.job, entry.route, entry.mime) == (made.at, "shop-1", "product", "text/html")
        assert page.about["meta"] == {"from": "Grüße"}
        await writer.close()

    async def test_a_coded_body_is_read_back_decoded_and_as_it_came(self, place: Place) -> None:
        """A3: beside others, before and after it is rolled."""
        writer = place()
        page, framing = b"<html>a page that came gzip-coded " * 50, (("content-length", "99"), ("vary", "*"))
        made = coded(1, page, headers=(("content-type", "text/html"), ("content-encoding", "gzip"), *framing))
        await writer.write([made, capture(2), coded(3, b"")])
        for _ in range(2):
            pages = await read(place())
            assert [one.answer.body for one in pages] == [page, capture(2).body, b""]
            assert [one.answer.wire for one in pages] == [made.body, b"", coded(3, b"").body]
            assert [one.answer.headers for one in pages] == [made.headers, capture(2).headers, capture(3).headers]
            for entry, one in zip(await found(place()), pages, strict=True):
                again = await place().read(entry)
                assert (again.answer.body, again.answer.wire) == (one.answer.body, one.answer.wire)
            assert not (await place().check()).damages
            await writer.close()

    async def test_equal_coded_bodies_are_read_back_from_each(self, place: Place) -> None:
        """A3: the body of another one says nothing about the coding of this one."""
        writer = place()
        page = bytes(value for number in range(2000) for value in (number * number % 251, number % 241))
        packed = coded(1, page).body
        await writer.write([coded(1, page), coded(2, page)])
        await writer.write([coded(3, page), capture(4, body=packed), coded(5, page)])
        for _ in range(2):
            pages = await read(place())
            assert [one.answer.body for one in pages] == [page, page, page, packed, page]
            for entry, one in zip(await found(place()), pages, strict=True):
                assert (await place().read(entry)).answer.body == one.answer.body
            assert not (await place().check()).damages
            await writer.close()

    async def test_batches_that_are_written_at_once_are_all_there(self, place: Place) -> None:
        """A1: a crawl with `--cache` writes robots.txt while a group commit is under way."""
        writer = place()
        await writer.open()
        body = b"the same body " * 100
        await asyncio.gather(*(writer.write([capture(number, body=body)]) for number in range(1, 9)))
        assert [page.answer.body for page in await read(place())] == [body] * 8
        await writer.close()
        assert [page.answer.body for page in await read(place())] == [body] * 8
        assert (await place().check()).damages == ()

    async def test_a_batch_is_there_when_write_returns_and_after_close(self, place: Place) -> None:
        """A1, A4: another process finds it before its writer has ended."""
        writer = place()
        await writer.write([capture(1), capture(2)])
        assert [entry.url for entry in await found(place())] == [capture(1).url, capture(2).url]
        await writer.close()
        assert writer.lost == 0
        assert [entry.url for entry in await found(place())] == [capture(1).url, capture(2).url]
        assert len(await read(place())) == 2

    async def test_nothing_is_skipped_that_is_whole(self, place: Place) -> None:
        """A3, A4: of what was written, and what is being written."""
        writer, skipped = place(), list[ArchiveDamage]()
        await writer.write([capture(1), capture(2)])
        await writer.close()
        await place().write([capture(3)])
        assert len([entry async for entry in place().entries(ALL, skipped.append)]) == 3
        assert len([page async for page in place().pages(ALL, skipped=skipped.append)]) == 3
        assert skipped == []

    async def test_a_dead_writer_leaves_what_it_wrote(self, place: Place) -> None:
        """A1, A4: it is never closed."""
        await place().write([capture(1)])
        await place().write([capture(2)])
        assert len(await found(place())) == 2
        assert (await place().tidy(0.0)).files == 0, "its writer may be at work"
        await place().tidy(NOON * 2)
        assert await place().tidy(NOON * 2) == ArchiveTidied()
        assert len(await found(place())) == 2
        assert [page.answer.body for page in await read(place())] == [capture(1).body, capture(2).body]
        assert not (await place().check()).damages

    async def test_a_capture_that_is_written_twice_is_found_once(self, place: Place) -> None:
        """A2"""
        first, second = place(), place()
        await first.write([capture(1)])
        await second.write([capture(1)])
        assert len(await found(place())) == 1
        await first.close()
        await second.close()
        assert len(await found(place())) == 1

    async def test_equal_bodies_are_read_back_from_each(self, place: Place) -> None:
        """A3"""
        writer = place()
        await writer.write([capture(1, body=_PAGE), capture(2, body=_PAGE)])
        await writer.write([capture(3, body=_PAGE, status=404), capture(4, body=b""), capture(5, body=b"")])
        for archive in (place(), writer):
            pages = await read(archive)
            assert [page.answer.body for page in pages] == [_PAGE, _PAGE, _PAGE, b"", b""]
            assert [page.answer.status for page in pages] == [200, 200, 404, 200, 200]
        for entry in await found(place()):
            assert (await place().read(entry)).answer.body == (_PAGE if entry.length and entry.digest else b"") or (
                entry.url in (capture(4).url, capture(5).url)
            )
        await writer.close()
        assert [page.answer.body for page in await read(place())] == [_PAGE, _PAGE, _PAGE, b"", b""]
        assert not (await place().check()).damages

    async def test_a_url_is_found_at_a_time(self, place: Place) -> None:
        """A4"""
        writer = place()
        url = "https://shop.example/p/x?b=2&a=1"
        await writer.write([capture(number, url=url, body=b"v%d" % number) for number in (1, 2, 3)])
        await writer.write([capture(4)])
        for _ in range(2):
            assert len(await found(place(), ArchiveQuery(url=url))) == 3
            before = await found(place(), ArchiveQuery(url=url, until=NOON + 2.5))
            assert (await place().read(before[-1])).answer.body == b"v2"
            assert len(await found(place(), ArchiveQuery(url="https://shop.example/p/*"))) == 4
            assert len(await found(place(), ArchiveQuery(since=NOON + 3.0))) == 2
            assert await found(place(), ArchiveQuery(url="https://shop.example/p/")) == []
            await writer.close()

    async def test_captures_are_found_by_job_and_route(self, place: Place) -> None:
        """A4"""
        writer = place()
        await writer.write([capture(1), capture(2, job="shop-2"), capture(3, route="listing")])
        assert len(await found(place(), ArchiveQuery(job="shop-2"))) == 1
        assert len(await found(place(), ArchiveQuery(route="listing"))) == 1
        assert len(await read(place(), ArchiveQuery(job="shop-1"))) == 2
        await writer.close()

    async def test_an_artifact_is_found_by_its_address(self, place: Place) -> None:
        """A3"""
        writer = place()
        address = "archive:sha256-0123/label.pdf"
        await writer.write([capture(1), capture(2, kind=CaptureKind.ARTIFACT, url=address, type="application/pdf")])
        await writer.close()
        [entry] = await found(place(), ArchiveQuery(url=address))
        assert (entry.kind, entry.mime) == (CaptureKind.ARTIFACT, "application/pdf")
        assert (await place().read(entry)).answer.body == capture(2).body

    async def test_readers_share_the_pages_between_them(self, place: Place) -> None:
        """Each page is read by one of them."""
        for start in range(0, 12, 3):
            writer = place()
            await writer.write([capture(number) for number in range(start + 1, start + 4)])
            await (writer.close() if start else asyncio.sleep(0))
        units = await place().units(ALL)
        parts = [[page async for page in place().pages(ALL, part, 3, units)] for part in range(3)]
        assert sorted(page.entry.id for part in parts for page in part) == [f"{n:032x}" for n in range(1, 13)]

    async def test_units_have_everything_and_are_read_alone(self, place: Place) -> None:
        """A4: what is rolled, what is not, and what is rolled after it was listed."""
        body = b"the same body " * 100
        first, second = place(), place()
        await first.write([capture(number, body=body) for number in range(1, 5)])
        await first.close()
        await second.write([capture(number, body=body) for number in range(5, 9)])
        # Between the index of a rolled file and the end of its objects both are listed: read twice, never not at all.
        for _ in range(1000):
            units = await place().units(ALL)
            if len(units) == 2:
                break
            await asyncio.sleep(0.01)
        assert len(units) == 2
        for _ in range(2):
            pages = [page for unit in units async for page in place().pages(ALL, units=[unit])]
            assert sorted(page.entry.id for page in pages) == [f"{n:032x}" for n in range(1, 9)]
            assert {page.answer.body for page in pages} == {body}
            await second.close()

    async def test_a_part_has_the_bodies_that_its_revisits_refer_to(self, place: Place) -> None:
        """A3"""
        body = b"the same body " * 100
        writer = place()
        await writer.write([capture(number, body=body) for number in range(1, 9)])
        await writer.close()
        for part in range(4):
            pages = [page async for page in place().pages(ALL, part, 4)]
            assert [page.answer.body for page in pages] == [body] * len(pages)

    async def test_pruning_removes_what_is_older_and_nothing_else(self, place: Place) -> None:
        """A5"""
        old, new = place(), place()
        await old.write([capture(1, body=_PAGE), capture(2, body=_PAGE)])
        await old.close()
        await new.write([capture(3, at=NOON + 86_400, body=_PAGE)])
        await new.close()
        would = await place().prune(NOON + 3600.0, dry_run=True)
        assert (would.files, would.captures) == (1, 2)
        assert len(await found(place())) == 3
        assert await place().prune(NOON + 3600.0) == would
        [left] = await read(place())
        assert left.answer.body == _PAGE
        assert not (await place().check()).damages

    async def test_an_empty_batch_and_closing_twice_are_harmless(self, place: Place) -> None:
        """A6"""
        archive = place()
        await archive.open()
        await archive.write([])
        await archive.close()
        await archive.close()
        assert await found(place()) == []

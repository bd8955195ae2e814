"""robots.txt and sitemaps, read from real servers."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate

import pytest
from tests.e2e.raw_site import Reply, Site, fetcher, ok, site
from tests.e2e.sitemap_crawl import SitemapCrawl

from trotline import RobotsSitemaps
from trotline.adapters.http.robots import FIRST_WAIT, GOOD_FOR, LONGEST_WAIT, RobotsTxt
from trotline.model.limits import Limits


class HandClock:
    """Time that a test turns by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


@asynccontextmanager
async def robots(reply: Reply | bytes, **options: object) -> AsyncIterator[tuple[RobotsTxt, Site, HandClock]]:
    clock = HandClock()
    async with site(reply) as there, fetcher(**options) as ours:
        yield RobotsTxt(ours, agent="trotline", limits=Limits(), clock=clock), there, clock


RULES = b"""\
User-agent: *
Disallow: /admin/
Disallow: /*?sort=
Crawl-delay: 2.5
Sitemap: /sitemap.xml
Sitemap: https://shop.example/more.xml

User-agent: otherbot
Disallow: /
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True),
        ("/p/1", True),
        ("/p/1?x=2", True),
        ("/admin", True),
        ("/admin/", False),
        ("/admin/x", False),
        ("/p?sort=price", False),
        ("/%61dmin/", False),
        ("", True),
    ],
)
async def test_rules_are_obeyed(path: str, allowed: bool) -> None:
    async with robots(ok(RULES)) as (ours, there, _):
        permission = await ours.ask(there.url(path))
    assert (allowed, 2.5, 0.0) == (permission.allowed, permission.delay, permission.ask_again)


async def test_rules_for_us_beat_rules_for_everybody() -> None:
    rules = b"User-agent: *\nDisallow: /\n\nUser-agent: Trotline\nDisallow: /private\n"
    async with robots(ok(rules)) as (ours, there, _):
        assert (await ours.ask(there.url("/x"))).allowed
        assert not (await ours.ask(there.url("/private"))).allowed


async def test_it_is_read_once_per_origin_and_day_however_many_ask() -> None:
    async with robots(ok(RULES)) as (ours, there, clock):
        await asyncio.gather(*(ours.ask(there.url(f"/{number}")) for number in range(50)))
        clock.time += GOOD_FOR - 1
        await ours.ask(there.url("/x"))
        assert len(there.requests) == 1
        clock.time += 2
        await ours.ask(there.url("/x"))
        assert len(there.requests) == 2


async def test_a_caller_that_is_cancelled_does_not_take_the_answer_from_the_others() -> None:
    asked, answer_now = asyncio.Event(), asyncio.Event()

    async def slow(_request: bytes, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await answer_now.wait()
        writer.write(ok(RULES))

    async with robots(slow) as (ours, there, _):
        first = asyncio.create_task(ours.ask(there.url("/a")))
        second = asyncio.create_task(ours.ask(there.url("/admin/")))
        await asked.wait()
        first.cancel()
        answer_now.set()
        assert not (await second).allowed
    assert len(there.requests) == 1


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "401 Unauthorized", "410 Gone", "400 Bad"])
async def test_no_rules_allow_everything(status: str) -> None:
    async with robots(ok(b"User-agent: *\nDisallow: /", status=status)) as (ours, there, _):
        assert (await ours.ask(there.url("/x"))).allowed


@pytest.mark.parametrize("status", ["429 Slow Down", "503 Later", "403 No"])
@pytest.mark.parametrize("when", ["7", "date"])
async def test_a_site_that_asks_for_quiet_is_asked_for_its_rules_when_that_is_over(status: str, when: str) -> None:
    later = when if when.isdigit() else formatdate(time.time() + 7.5, usegmt=True)
    async with robots(ok(b"", f"Retry-After: {later}", status=status)) as (ours, there, clock):
        for asked in (1, 2):
            permission = await ours.ask(there.url("/"))
            assert (permission.allowed, permission.throttled) == (False, True)
            assert permission.ask_again == pytest.approx(7, abs=1.5)
            clock.time += permission.ask_again - 1
            await ours.ask(there.url("/"))
            assert len(there.requests) == asked, "it is left alone until then"
            clock.time += 2


@pytest.mark.parametrize("status", ["500 Oops", "503 Later", "429 Slow Down"])
async def test_rules_that_cannot_be_read_disallow_for_a_while_that_grows(status: str) -> None:
    async with robots(ok(b"", status=status)) as (ours, there, clock):
        waits = []
        for _ in range(9):
            permission = await ours.ask(there.url("/x"))
            assert not permission.allowed
            assert status[:3] in permission.why
            waits.append(permission.ask_again)
            clock.time += permission.ask_again
        assert waits == [FIRST_WAIT, 120.0, 240.0, 480.0, 960.0, 1920.0, LONGEST_WAIT, LONGEST_WAIT, LONGEST_WAIT]
        there.reply = ok(RULES)
        assert (await ours.ask(there.url("/x"))).allowed


async def test_a_connection_that_breaks_disallows_for_a_while() -> None:
    async def cut(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with robots(cut) as (ours, there, _):
        permission = await ours.ask(there.url("/x"))
    assert (permission.allowed, permission.ask_again) == (False, FIRST_WAIT)


async def test_a_host_that_is_refused_or_does_not_exist_is_left_to_the_visit_itself() -> None:
    async with robots(ok(RULES), allow_private=False) as (ours, there, _):
        assert (await ours.ask(there.url("/admin/"))).allowed
        assert (await ours.ask(f"http://{'x' * 64}.example/")).allowed
    assert there.connections == 0


async def test_redirects_are_followed() -> None:
    async def move(request: bytes, writer: asyncio.StreamWriter) -> None:
        hop = int(request.split(b" ")[1].partition(b"=")[2] or 0)
        writer.write(ok(RULES) if hop == 5 else ok(b"", f"Location: /robots.txt?hop={hop + 1}", status="301 Moved"))

    async with robots(move) as (ours, there, _):
        assert not (await ours.ask(there.url("/admin/"))).allowed


@pytest.mark.parametrize("target", ["/robots.txt", "file:///etc/passwd", "http://127.0.0.1:22/robots.txt"])
async def test_redirects_that_lead_nowhere_mean_no_rules(target: str) -> None:
    async with robots(ok(b"", f"Location: {target}", status="302 Found")) as (ours, there, _):
        assert (await ours.ask(there.url("/admin/"))).allowed
    assert len(there.requests) <= 6


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        (b"<!DOCTYPE html><html>User-agent: *\nDisallow: /</html>", True),
        (b"\n\n  <html>", True),
        (b"", True),
        (b"\0\1\2\3" * 100, True),
        ("\ufeffUser-agent: *\nDisallow: /".encode(), False),
        ("User-agent: *\nDisallow: /".encode("utf-16"), False),
        (b"User-agent: *\r\nDisallow: /\r\n", False),
        (b"user-agent:*\rdisallow:/\r", False),
        (b"User-agent: *\nDisallow:\n", True),
        (b"User-agent: *\nDisallow: /a*****************************b$\n", True),
        (b"User-agent: *\nDisallow: /x\n" + b"x" * 600_000, False),
        (b"#" * 600_000 + b"\nUser-agent: *\nDisallow: /\n", True),
    ],
)
async def test_strange_files_are_read_as_far_as_they_make_sense(body: bytes, allowed: bool) -> None:
    async with robots(ok(body, "Content-Type: text/plain")) as (ours, there, _):
        assert allowed is (await ours.ask(there.url("/x"))).allowed


# Sitemaps


def files(pages: dict[str, Callable[[Site], bytes]]) -> tuple[Reply, list[Site]]:
    """A reply that serves these files; each is told the site it is on."""
    where: list[Site] = []

    async def serve(request: bytes, writer: asyncio.StreamWriter) -> None:
        made = pages.get(request.split(b" ")[1].decode())
        writer.write(made(where[0]) if made else ok(b"", status="404 Not Found"))

    return serve, where


def index(*urls: str) -> bytes:
    return (
        b"<sitemapindex>"
        + b"".join(f"<sitemap><loc>{url}</loc></sitemap>".encode() for url in urls)
        + b"</sitemapindex>"
    )


def urlset(*urls: str) -> bytes:
    listed = b"".join(f"<url><loc>{url}</loc><lastmod>2026-01-01</lastmod></url>".encode() for url in urls)
    return b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">' + listed + b"</urlset>"


async def test_an_index_leads_to_its_sitemaps_and_foreign_pages_are_dropped() -> None:
    serve, where = files(
        {
            "/sitemap.xml": lambda here: ok(index(here.url("/a.xml"), here.url("/b.xml.gz"), here.url("/gone.xml"))),
            "/a.xml": lambda here: ok(b"", "Location: /moved.xml", status="301 Moved"),
            "/moved.xml": lambda here: ok(urlset(here.url("/1"), "http://other.example/2", "ftp://x/3")),
            "/b.xml.gz": lambda here: ok(gzip.compress(urlset(here.url("/4"))), "Content-Type: application/gzip"),
        }
    )
    async with site(serve) as there, fetcher() as ours:
        where.append(there)
        crawl = await SitemapCrawl(ours).of(there.url("/sitemap.xml"))
    assert {there.url("/1"), there.url("/4")} == set(crawl.urls)
    assert crawl.files == 3
    assert crawl.cut == {"sitemap: URL of another host": 1, "sitemap: not an http(s) URL": 1}
    assert crawl.buried == {there.url("/gone.xml"): "gone: 404"}


async def test_an_index_of_itself_ends() -> None:
    serve, where = files(
        {
            "/0": lambda here: ok(index(here.url("/0"), here.url("/1"))),
            "/1": lambda here: ok(index(here.url("/0"), here.url("/2"))),
            "/2": lambda here: ok(index(here.url("/3")) + b""),
            "/3": lambda here: ok(urlset(here.url("/page"))),
        }
    )
    async with site(serve) as there, fetcher() as ours:
        where.append(there)
        crawl = await SitemapCrawl(ours).of(there.url("/0"))
    assert (crawl.urls, len(there.requests)) == ([], 3)
    assert crawl.cut == {"sitemap: depth": 1}


async def test_a_sitemap_that_cannot_be_read_now_is_tried_again_like_a_page() -> None:
    async with site(ok(b"", status="500 Oops")) as there, fetcher() as ours:
        crawl = await SitemapCrawl(ours).of(there.url("/sitemap.xml"))
    assert crawl.again == {there.url("/sitemap.xml"): "broken: 500"}


async def test_robots_txt_names_sitemaps_and_its_pace_holds_for_them() -> None:
    pages = urlset("https://www.shop.example/1", "https://shop.example/2", "https://evil.example/3")
    robots = b"User-agent: *\nDisallow: /\nCrawl-delay: 7\nsitemap : /s.xml # all of them\n"
    serve, where = files({"/robots.txt": lambda here: ok(robots), "/s.xml": lambda here: ok(pages)})
    async with site(serve) as there, fetcher() as ours:
        where.append(there)
        rules = RobotsTxt(ours, agent="test", limits=Limits())
        crawl = await SitemapCrawl(ours, robots=rules).of(RobotsSitemaps(there.url("/any/page")))
    assert (crawl.urls, crawl.files) == ([], 2)
    assert crawl.cut == {"sitemap: URL of another host": 3}
    assert crawl.intervals == {7.0}


async def test_a_robots_file_that_names_no_sitemap_is_no_silent_end() -> None:
    async with site(ok(b"User-agent: *\nAllow: /\n")) as there, fetcher() as ours:
        crawl = await SitemapCrawl(ours).of(RobotsSitemaps(there.url("/")))
    assert crawl.buried == {there.url("/robots.txt"): "sitemap: robots.txt lists none"}


async def test_a_sitemap_waits_until_robots_txt_can_be_read() -> None:
    async with site(ok(b"", status="503 Later")) as there, fetcher() as ours:
        rules = RobotsTxt(ours, agent="test", limits=Limits())
        crawl = await SitemapCrawl(ours, robots=rules).of(there.url("/s.xml"))
    assert crawl.again == {there.url("/s.xml"): "unreachable: robots.txt: 503"}
    assert len(there.requests) == 1

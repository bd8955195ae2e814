"""The site that limits and bans by address."""

import asyncio
import time

from tests.e2e.raw_site import fetcher, task
from trotline.model.answer import Answer
from trotline.testing import BanRules, BanSite


def statuses(site: BanSite, address: str, times: list[float]) -> list[int]:
    return [site.judge(address, now) for now in times]


async def test_a_client_within_the_limit_is_served_for_ever() -> None:
    site = BanSite(BanRules(rate=2.0))
    assert statuses(site, "a", [number * 0.5 for number in range(1000)]) == [200] * 1000


async def test_too_many_requests_are_429_and_then_a_ban() -> None:
    site = BanSite(BanRules(rate=1.0, ban_after=3, ban_for=10.0))
    assert statuses(site, "a", [0.0, 0.1, 0.2, 0.3, 0.4, 9.0]) == [200, 429, 429, 429, 403, 403]
    assert statuses(site, "b", [0.5]) == [200], "another client is not banned"
    assert statuses(site, "a", [10.31]) == [200], "a ban ends"


async def test_a_ban_that_is_renewed_by_asking_does_not_end() -> None:
    site = BanSite(BanRules(rate=1.0, ban_after=1, ban_for=10.0, renews=True))
    assert statuses(site, "a", [0.0, 0.1, 5.0, 14.0, 23.0, 40.0]) == [200, 429, 403, 403, 403, 200]


async def test_a_burst_is_served_and_refills() -> None:
    site = BanSite(BanRules(rate=1.0, burst=3.0, ban_after=0))
    assert statuses(site, "a", [0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0]) == [200, 200, 200, 429, 200, 200, 429]


async def test_every_request_is_recorded_with_its_answer() -> None:
    rules = BanRules(rate=0.001, ban_after=0, retry_after=7)
    async with BanSite(rules, page=lambda path: None if path == "/no" else b"<p>") as site, fetcher() as fetch:
        first, second = [await fetch.fetch(task(site.url(path))) for path in ("/no", "/b")]
        robots = await fetch.fetch(task(site.url("/robots.txt")))
    assert isinstance(first, Answer) and isinstance(second, Answer) and isinstance(robots, Answer)
    assert second.header("retry-after") == "7"
    assert [(one.address, one.path, one.status) for one in site.log] == [
        ("127.0.0.1", "/no", 404), ("127.0.0.1", "/b", 429), ("127.0.0.1", "/robots.txt", 404),
    ]  # fmt: skip
    assert site.over_limit() == [site.log[1]]


async def test_it_is_cheap_enough_for_five_thousand_requests_a_minute() -> None:
    """In a tenth of its time: the rest is for what is tested."""
    count = 2_000
    async with BanSite(BanRules(rate=1e6, burst=1e6)) as site:
        reader, writer = await asyncio.open_connection(site.host, site.port)
        cpu = time.process_time()
        for start in range(0, count, 100):
            writer.write(
                b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(start, start + 100))
            )
            for _ in range(100):
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
        cpu = time.process_time() - cpu
        writer.close()
    assert len(site.log) == count
    assert cpu / count * 5_000 < 6.0, cpu


async def test_the_latency_varies_by_the_jitter() -> None:
    site = BanSite(BanRules(latency=0.3, jitter=0.15))
    delays = [site.delay() for _ in range(200)]
    assert min(delays) >= 0.15
    assert max(delays) <= 0.45
    assert max(delays) - min(delays) > 0.2
    assert {BanSite(BanRules(latency=0.3)).delay() for _ in range(3)} == {0.3}

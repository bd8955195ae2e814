"""What one fetched all may use, on a real server; and robots.txt as its first user."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.contract.postgres_servers import fresh
from tests.contract.redis_servers import server
from tests.e2e.raw_site import fetcher, ok, site

from trotline.adapters.http.robots import FIRST_WAIT, GOOD_FOR, RobotsTxt
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.frontier_url import parse
from trotline.adapters.postgres.frontier.shared_cache import PostgresSharedCache
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.shared_cache import LARGEST, RedisSharedCache
from trotline.model.limits import Limits
from trotline.testing.clocks import ServerClock
from trotline.testing.postgres_server import DEBIAN as POSTGRES
from trotline.testing.postgres_server import postgres
from trotline.testing.redis_server import BUILDS, DEBIAN, redis

_numbers = itertools.count()
Cache = RedisSharedCache | PostgresSharedCache
Open = Callable[..., Cache]


@pytest.fixture(params=[*BUILDS, "postgres", "pgbouncer"])
async def shelves(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Opens the same new cache again and again, as many workers do."""
    opened: list[Cache] = []
    kind = f"test{next(_numbers)}"
    url = ""
    if request.param not in BUILDS:
        place = POSTGRES if request.param == "postgres" else request.param
        url = fresh(request.getfixturevalue("postgres_servers").url(place), pool=1)

    def another(now: Callable[[], float] | None = None, **options: Any) -> Cache:
        if url:
            opened.append(PostgresSharedCache(Database(parse(url), now=now), kind, **options))
        else:
            opened.append(RedisSharedCache(connect(server(request.param).url), kind, now=now, **options))
        return opened[-1]

    yield another
    for cache in opened:
        await cache.close()


async def test_h1_what_was_put_is_found_by_everybody_with_its_age(shelves: Open) -> None:
    clock = ServerClock()
    one, two = shelves(now=clock), shelves(now=clock)
    await one.put("a", b"\x00value", 10.0)
    clock.jump(4)
    kept = await two.find("a", 1.0)
    assert kept is not None
    assert (kept.value, kept.age, kept.left) == (b"\x00value", pytest.approx(4.0, abs=0.1), pytest.approx(6, abs=0.1))


async def test_h1_what_is_over_is_not_found_and_a_new_value_replaces_the_old(shelves: Open) -> None:
    clock = ServerClock()
    cache = shelves(now=clock)
    await cache.put("a", b"old", 10.0)
    await cache.put("a", b"new", 10.0)
    kept = await cache.find("a", 1.0)
    assert kept is not None and kept.value == b"new"
    clock.jump(11)
    assert await cache.find("a", 1.0) is None


async def test_h1_room_is_bounded_by_number_and_by_bytes(shelves: Open) -> None:
    few = shelves(most=3)
    for number in range(5):
        await few.put(f"n{number}", b"x", 100.0 + number)
    assert [(await few.find(f"n{number}", 0.001)) is not None for number in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    small = shelves(most_bytes=2_000)
    for number in range(5):
        await small.put(f"b{number}", b"x" * 900, 200.0 + number)
    assert [(await small.find(f"b{number}", 0.001)) is not None for number in range(5)] == [False] * 3 + [True] * 2


async def test_what_is_over_makes_room(shelves: Open) -> None:
    clock = ServerClock()
    cache = shelves(now=clock)
    for number in range(50):
        await cache.put(f"n{number}", b"x" * 100, 10.0)
    clock.jump(11)
    await cache.put("last", b"x", 10.0)
    if isinstance(cache, PostgresSharedCache):
        async with cache._database.transaction() as db:
            assert await db.fetchval("SELECT count(*) FROM cache") == 1
    else:
        assert await cache._server.ask("HLEN", cache._key) == 1
        assert int(await cache._server.ask("GET", f"{cache._key}:bytes")) == 17


async def test_h2_of_many_who_look_one_fetches_and_the_others_get_it(shelves: Open) -> None:
    fetched = 0

    async def worker(cache: Cache) -> bytes:
        nonlocal fetched
        kept = await cache.find("a", 30.0)
        if kept is not None:
            return kept.value
        fetched += 1
        await asyncio.sleep(0.05)
        await cache.put("a", b"value", 10.0)
        return b"value"

    assert set(await asyncio.gather(*(worker(shelves()) for _ in range(10)))) == {b"value"}
    assert fetched == 1


async def test_h2_nobody_waits_for_long_for_one_who_died(shelves: Open) -> None:
    assert await shelves().find("a", 0.2) is None
    async with asyncio.timeout(20):
        assert await shelves().find("a", 0.2) is None


async def test_h2_what_is_left_to_others_is_theirs_at_once(shelves: Open) -> None:
    one, two = shelves(), shelves()
    assert await one.find("a", 600.0) is None
    await one.leave("a")
    async with asyncio.timeout(20):
        assert await two.find("a", 600.0) is None


async def test_what_is_too_large_is_left_to_everybody(shelves: Open) -> None:
    one, two = shelves(), shelves()
    assert await one.find("a", 600.0) is None
    await one.put("a", b"x" * (LARGEST + 1), 10.0)
    async with asyncio.timeout(20):
        assert await two.find("a", 600.0) is None


async def test_h3_a_shelf_that_is_away_is_an_empty_one() -> None:
    with redis() as gone:
        cache = RedisSharedCache(connect(gone.url), "robots")
        await cache.put("a", b"value", 10.0)
        gone.kill()
        assert await cache.find("a", 1.0) is None
        await cache.put("a", b"value", 10.0)
        await cache.leave("a")
        await cache.close()


async def test_h3_a_cache_in_a_postgres_that_is_away_is_an_empty_one() -> None:
    with postgres() as gone:
        cache = PostgresSharedCache(Database(parse(f"{gone.url}?patience=1s")), "robots")
        await cache.put("a", b"value", 10.0)
        gone.stop("immediate")
        assert await cache.find("a", 1.0) is None
        await cache.put("a", b"value", 10.0)
        await cache.leave("a")
        await cache.close()


# --- robots.txt ------------------------------------------------------------------------------------------------------


async def test_robots_txt_is_read_once_for_all_workers_and_all_obey_it(shelves: Open) -> None:
    rules = b"User-agent: *\nDisallow: /admin/\nCrawl-delay: 2\n"
    async with site(ok(rules)) as there, fetcher() as ours:
        workers = [RobotsTxt(ours, agent="test", limits=Limits(), cache=shelves()) for _ in range(8)]
        for path, allowed in (("/", True), ("/admin/", False)):
            found = await asyncio.gather(*(worker.ask(there.url(path)) for worker in workers))
            assert {(one.allowed, one.delay) for one in found} == {(allowed, 2.0)}
        assert len(there.requests) == 1


@pytest.mark.parametrize("status", [404, 503])
async def test_a_site_without_rules_or_in_trouble_is_asked_once_too(shelves: Open, status: int) -> None:
    async with site(ok(b"", status=f"{status} So")) as there, fetcher() as ours:
        workers = [RobotsTxt(ours, agent="test", limits=Limits(), cache=shelves()) for _ in range(4)]
        found = await asyncio.gather(*(worker.ask(there.url("/")) for worker in workers))
        assert len(there.requests) == 1
    assert {one.allowed for one in found} == {status == 404}
    assert all(one.ask_again <= FIRST_WAIT for one in found)


async def test_what_others_were_told_is_as_old_as_it_is(shelves: Open) -> None:
    clock = ServerClock()
    async with site(ok(b"User-agent: *\nDisallow: /\n")) as there, fetcher() as ours:
        first = RobotsTxt(ours, agent="test", limits=Limits(), cache=shelves(now=clock))
        await first.ask(there.url("/"))
        clock.jump(GOOD_FOR / 2)
        second = RobotsTxt(ours, agent="test", limits=Limits(), cache=shelves(now=clock))
        await second.ask(there.url("/"))
        [word] = second._cached.values()
        assert word.until - second._now() == pytest.approx(GOOD_FOR / 2, abs=60)
        assert len(there.requests) == 1


async def test_our_own_trouble_is_not_told_to_others(shelves: Open) -> None:
    async with site(ok()) as closed:
        refused = closed.url("")
    async with fetcher() as ours:
        worker = RobotsTxt(ours, agent="test", limits=Limits(), cache=shelves())
        assert not (await worker.ask(f"{refused}/")).allowed
    async with asyncio.timeout(20):
        assert await shelves().find(refused, 600.0) is None


async def test_without_the_server_every_worker_reads_it_itself() -> None:
    with redis(DEBIAN) as gone:
        url = gone.url
    async with site(ok(b"User-agent: *\nDisallow: /admin/\n")) as there, fetcher() as ours:
        for _ in range(2):
            cache = RedisSharedCache(connect(url), "robots")
            worker = RobotsTxt(ours, agent="test", limits=Limits(), cache=cache)
            assert not (await worker.ask(there.url("/admin/"))).allowed
            await cache.close()
        assert len(there.requests) == 2


@pytest.mark.parametrize("value", [b"", b"\x09newer", b"\x01damaged"])
async def test_what_cannot_be_read_is_fetched_and_replaced(shelves: Open, value: bytes) -> None:
    async with site(ok(b"User-agent: *\nDisallow: /admin/\n")) as there, fetcher() as ours:
        await shelves().put(there.url(""), value, 100.0)
        for _ in range(2):
            worker = RobotsTxt(ours, agent="test", limits=Limits(), cache=shelves())
            assert not (await worker.ask(there.url("/admin/"))).allowed
        assert len(there.requests) == 1

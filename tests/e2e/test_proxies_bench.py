"""`trotline proxies bench` over real proxies, against sites that ban: the site's own log is the judge."""

import asyncio
import signal
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from tests.e2e.proxied import Banning, page_of
from tests.e2e.running import Ended, start

from trotline.config.proxy_pools import load
from trotline.testing import real_proxies
from trotline.testing.ban_site import BanRules
from trotline.testing.real_proxies import RealProxy

SECRET = "canary-of-a-proxy"  # noqa: S105 - of proxies of our own
GENEROUS = BanRules(rate=1000.0, burst=1000.0, ban_for=600.0)
FAST = ("--pace", "50/s", "--host-pace", "200/s")
ADDRESSES = [f"127.0.0.{number}" for number in range(61, 66)]


@pytest.fixture(scope="module")
def five() -> Iterator[list[RealProxy]]:
    """Five real proxies with logins, each with an address of its own."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                real_proxies.tinyproxy(leaves_from=address, user="anna", password=SECRET)
                if number % 2
                else real_proxies.microsocks(leaves_from=address, user="anna", password=SECRET)
            )
            for number, address in enumerate(ADDRESSES)
        ]


@pytest.fixture
async def opened() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def site(opened: AsyncExitStack, rules: BanRules = GENEROUS, host: str = "127.0.0.10") -> Banning:
    return await opened.enter_async_context(Banning(rules, page=page_of(200), host=host))


def pools(folder: Path, *tables: str) -> None:
    path = folder / "proxies.toml"
    path.write_text("\n".join(tables))
    path.chmod(0o600)


def pool(name: str, proxies: list[RealProxy], more: str = "") -> str:
    listed = ", ".join(f'"{proxy.url}"' for proxy in proxies)
    return f"[pools.{name}]\nproxies = [{listed}]\n{more}\n"


async def bench(folder: Path, *words: str, file: str = "proxies.toml") -> Ended:
    ended = await (await start(folder, "proxies", "bench", "--proxies", file, "--allow", "127.0.0.0/8", *words)).end()
    assert SECRET not in ended.out + ended.err and "anna" not in ended.out + ended.err
    return ended


async def test_a_banned_proxy_shows_in_the_shares_the_members_and_the_weights(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    picky = await site(opened)
    picky.banned = {ADDRESSES[1]}
    prices = 'provider = "Acme"\nkind = "residential"\ncost_per_gb = 8.0\ncost_per_request = 0.001'
    pools(tmp_path, pool("home", five, prices))
    words = (picky.url("/"), picky.url("/p/1"), "--requests", "5", *FAST, "--write-weights", "weights.toml")

    ended = await bench(tmp_path, *words, "--json")

    assert ended.code == 0, ended
    assert len(picky.log) == 50 and picky.statuses() == {200: 40, 403: 10}
    assert set(Counter(picky.addresses()).values()) == {10}, "each proxy is asked equally often"
    plan, row = (event for event in ended.events if event["event"] in ("plan", "row"))
    assert (plan["pages"], plan["pools"]) == (50, {"home": 5})
    assert (row["pool"], row["provider"], row["pages"], row["good"]) == ("home", "Acme", 50, 40)
    good, blocked = row["shares"]["good"], row["shares"]["blocked"]
    assert (good["value"], blocked["value"]) == (0.8, 0.2)
    assert (round(good["low"], 3), round(good["high"], 3)) == (0.670, 0.888), "Wilson"
    assert row["reasons"] == {"blocked": {"403": 10}}
    assert 0 < row["p50"] <= row["p95"] < 5
    cost = 1000 * (row["bytes"] / 1e9 * 8.0 + 50 * 0.001) / 40
    assert row["cost"] == pytest.approx(cost)
    assert row["cost_interval"][0] < cost < row["cost_interval"][1]
    members = [event for event in ended.events if event["event"] == "member"]
    assert members[-1]["proxy"] == f"127.0.0.1:{five[1].port}" and members[-1]["blocked"] == 10
    weights = tomllib.loads((tmp_path / "weights.toml").read_text())["pools"]["home"]
    assert sorted(weights.values()) == [0.05, 1, 1, 1, 1]
    assert weights[members[-1]["member"]] == 0.05


async def test_the_table_says_what_was_measured_and_the_weights_reach_the_pools(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    picky, easy = await site(opened), await site(opened, host="127.0.0.11")
    picky.banned = {ADDRESSES[0]}
    pools(tmp_path, pool("home", five[:3]), pool("spare", five[3:], "cost_per_request = 0.002"))
    before = (tmp_path / "proxies.toml").read_text()
    words = (picky.url("/p/1"), easy.url("/p/1"), "--requests", "10", *FAST, "--write-weights", "weights.toml")

    ended = await bench(tmp_path, *words)

    assert ended.code == 0, ended
    assert "plan: 100 requests = 5 proxies (3 of pool home, 2 of pool spare) x 2 pages x 10" in ended.err
    lines = ended.out.splitlines()
    assert lines[0] == "home: 3 members, datacenter"
    assert lines[1].split() == ["host", "requests", "good", "blocked", "faults", "p50", "p95"]
    assert lines[3].split()[:8] == [easy.url("")[7:], "30", "100%", "(89-100)", "0%", "(0-11)", "0%", "(0-11)"]
    assert lines[2].split()[:6] == [picky.url("")[7:], "30", "67%", "(49-81)", "33%", "(19-51)"]
    assert "no cost: the pool has no cost_per_gb and no cost_per_request" in ended.out
    assert f"{picky.url('')[7:]}: blocked: 403: 10" in ended.out
    assert f"worst: 127.0.0.1:{five[0].port}" in ended.out
    assert " 2 (2-2)" in ended.out, "all pages of the other pool are good: 1,000 requests"
    assert max(map(len, lines)) <= 80
    assert 'write at the top of proxies.toml:  weights = "weights.toml"' in lines[-1]
    assert (tmp_path / "proxies.toml").read_text() == before

    pools(tmp_path, 'weights = "weights.toml"', before)
    book = load(str(tmp_path / "proxies.toml"))
    assert book.notes == ()
    shares = {book.way("home", each.id, "").public: each.weight for each in book.pool("home").members}  # type: ignore[union-attr]
    assert 0.3 < shares[f"127.0.0.1:{five[0].port}"] < 0.4
    assert shares[f"127.0.0.1:{five[1].port}"] == 1.0
    again = await bench(tmp_path, easy.url("/p/1"), "--pool", "spare", *FAST, "--write-weights", "weights.toml")
    assert "workers with this proxies file use them within 5 seconds" in again.out
    kept = load(str(tmp_path / "proxies.toml")).pool("home").members
    assert [each.weight for each in kept] == [each.weight for each in book.pool("home").members]


async def test_dead_proxies_are_faults_and_few_requests_are_said_to_be_few(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    shop = await site(opened)
    dead = RealProxy("none", "http", "127.0.0.1", 1, "anna", SECRET)
    pools(tmp_path, pool("home", [five[0], dead]))

    ended = await bench(tmp_path, shop.url("/p/1"), *FAST)

    assert ended.code == 0, ended
    assert "too few for shares: 10 of at least 20 requests; 5 were good" in ended.out
    assert "%" not in ended.out.replace("95 %", ""), "no false precision"
    assert "fault: unreachable: Connection refused: 5" in ended.out
    assert "worst: 127.0.0.1:1 " in ended.out


async def test_a_pool_without_a_good_page_ends_with_3_and_writes_no_weights(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    shop = await site(opened)
    shop.banned = set(ADDRESSES)
    pools(tmp_path, pool("home", five))

    ended = await bench(tmp_path, shop.url("/p/1"), "--requests", "20", *FAST, "--write-weights", "weights.toml")

    assert ended.code == 3, ended
    assert 5 <= len(shop.log) <= 10, "a site that blocks all of them is left in peace"
    assert "requests not sent: 5 proxies in a row were blocked" in ended.out
    assert "weights.toml is not written" in ended.out
    assert not (tmp_path / "weights.toml").exists()


async def test_the_pace_of_each_proxy_and_of_the_host_is_kept(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    shop = await site(opened)
    pools(tmp_path, pool("home", five[:2]), pool("slow", five[2:3], 'pace = "5/s"'))

    ended = await bench(tmp_path, shop.url("/p/1"), "--requests", "6", "--pace", "10/s", "--host-pace", "16/s")

    assert ended.code == 0, ended
    starts = sorted(request.at for request in shop.log)
    # Scheduling and connecting may bring two starts nearer to each other, not the sum of them.
    assert starts[-1] - starts[0] >= (len(starts) - 2) / 16
    for address, pace in ((ADDRESSES[0], 10), (ADDRESSES[1], 10), (ADDRESSES[2], 5)):
        own = [request.at for request in shop.log if request.address == address]
        assert len(own) == 6 and own[-1] - own[0] >= 4.5 / pace, address


async def test_a_429_slows_its_proxy_and_a_long_retry_after_ends_it(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    strict = await site(opened, BanRules(rate=0.5, burst=2.0, ban_after=0, retry_after=600))
    pools(tmp_path, pool("home", five[:2]))

    ended = await bench(tmp_path, strict.url("/p/1"), "--requests", "10", *FAST, "--json")

    assert strict.statuses() == {200: 4, 429: 2}
    row = next(event for event in ended.events if event["event"] == "row")
    assert row["left_out"] == {"429 with a Retry-After above 60 s": 14}


async def test_a_sample_of_a_pool_is_random_and_too_small_a_one_is_said(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    shop = await site(opened)
    pools(tmp_path, pool("home", five))
    used: set[str] = set()
    for _ in range(6):
        ended = await bench(tmp_path, shop.url("/p/1"), "--requests", "10", "--limit", "2", *FAST)
        assert "plan: 20 requests = 2 proxies (2 of 5 of pool home)" in ended.err
        assert "too few for shares: 2 of at least 10 proxies (--limit); 20 were good" in ended.out
        used = set(shop.addresses())
    # The chance that six random pairs leave out the same three is 1 in 10^5; two of the first would never change.
    assert len(used) > 2


async def test_redirects_are_followed_judged_and_counted(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    shop = await site(opened)
    moved = await opened.enter_async_context(_Moved(shop.url("/p/7")))
    pools(tmp_path, pool("home", five[:2], "cost_per_request = 1.0"))

    ended = await bench(tmp_path, moved.url, "--requests", "10", *FAST, "--json")

    assert ended.code == 0, ended
    row = next(event for event in ended.events if event["event"] == "row")
    assert (row["pages"], row["requests"], row["good"], row["cost"]) == (20, 40, 20, 2000.0)
    assert len(shop.log) == 20


async def test_ctrl_c_shows_what_is_known_and_returns_130(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    shop = await site(opened)
    pools(tmp_path, pool("home", five))
    words = ("proxies", "bench", "--proxies", "proxies.toml", "--allow", "127.0.0.0/8", shop.url("/p/1"))
    running = await start(tmp_path, *words, "--requests", "200", "--pace", "20/s", "--write-weights", "weights.toml")
    await shop.asked(60)
    running.signal_all(signal.SIGINT)

    ended = await running.end()

    assert ended.code == 130
    assert "home: 5 members" in ended.out and "of 1,000 were measured" in ended.err
    assert len(shop.log) < 200
    assert len(tomllib.loads((tmp_path / "weights.toml").read_text())["pools"]["home"]) == 5


async def test_what_cannot_start_says_why_and_sends_nothing(
    tmp_path: Path, five: list[RealProxy], opened: AsyncExitStack
) -> None:
    shop = await site(opened)
    pools(tmp_path, pool("home", five))
    for words, part in (
        ((), "Missing argument 'URL...'"),
        (("shop.example",), "shop.example is not an http:// or https:// URL"),
        ((shop.url("/"), "--pool", "hone"), "there is no proxy pool 'hone'"),
        ((shop.url("/"), "--requests", "500"), "this would be 2,500 requests, more than 2,000"),
        ((shop.url("/"), "--pace", "fast"), "--pace"),
        ((shop.url("/"), "--timeout", "0s"), "--timeout"),
        ((shop.url("/"), "--user-agent", "a\nb"), "--user-agent"),
        ((shop.url("/"), "--write-weights", "proxies.toml"), "it is not overwritten"),
        ((shop.url("/"), "--write-weights", "none/weights.toml"), "its folder does not exist"),
        (("http://10.1.2.3/",), "http://10.1.2.3/ cannot be used"),
    ):
        ended = await bench(tmp_path, *words)
        assert (ended.code, ended.out) == (2, ""), words
        assert part in ended.err, ended.err
    assert shop.log == []


class _Moved:
    """Answers everything with a redirect."""

    def __init__(self, to: str) -> None:
        self._to = to

    async def __aenter__(self) -> "_Moved":
        self._server = await asyncio.start_server(self._answer, "127.0.0.12", 0)
        self.url = f"http://127.0.0.12:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 302 Found\r\nLocation: {self._to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        writer.close()

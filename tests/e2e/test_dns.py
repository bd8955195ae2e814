"""Names: what the small DNS server says on the wire, and what becomes of bad names in the real resolver and fetcher."""

import asyncio
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.e2e.own_world import World, world
from tests.e2e.raw_site import fetcher, ok, site, task

from trotline.adapters.http import resolver
from trotline.adapters.http.guard import Guard
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.rules.verdicts import judge
from trotline.testing.dns import CNAME, NXDOMAIN, REFUSED, SERVFAIL, TYPE_A, TYPE_AAAA, A, DnsServer, Silence, Turns

pytestmark = pytest.mark.xdist_group("world")


def question(name: str, kind: int = TYPE_A, number: int = 7) -> bytes:
    labels = b"".join(bytes((len(label),)) + label.encode() for label in name.split("."))
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def addresses(message: bytes) -> list[str]:
    """The addresses in an answer that repeats names in full, as ours does."""
    count = struct.unpack_from("!H", message, 6)[0]
    place = message.index(b"\0", 12) + 5
    found = []
    for _ in range(count):
        place = message.index(b"\0", place) + 1
        kind, _, _, size = struct.unpack_from("!HHIH", message, place)
        data = message[place + 10 : place + 10 + size]
        if kind in (TYPE_A, TYPE_AAAA):
            found.append(socket.inet_ntop(socket.AF_INET if kind == TYPE_A else socket.AF_INET6, data))
        place += 10 + size
    return found


def over_udp(port: int, message: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(30)
        asker.sendto(message, ("127.0.0.1", port))
        return asker.recv(65_535)


def over_tcp(port: int, message: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 30) as asker, asker.makefile("rb") as answers:
        asker.sendall(struct.pack("!H", len(message)) + message)
        return answers.read(struct.unpack("!H", answers.read(2))[0])


def code(message: bytes) -> int:
    return message[3] & 15


@pytest.fixture
def dns() -> Iterator[DnsServer]:
    zone = {
        "shop.test": A("192.0.2.1", "2001:db8::1", "192.0.2.2"),
        "*.shop.test": CNAME("shop.test"),
        "turn.test": Turns(A("192.0.2.1"), SERVFAIL, A("10.0.0.1")),
        "gone.test": NXDOMAIN,
        "no.test": REFUSED,
        "many.test": A(*[f"192.0.2.{number}" for number in range(200)]),
        "circle.test": CNAME("circle.test"),
    }
    with DnsServer.in_thread(zone) as server:
        yield server


def test_a_name_has_the_addresses_of_its_kind(dns: DnsServer) -> None:
    assert addresses(over_udp(dns.port, question("shop.test"))) == ["192.0.2.1", "192.0.2.2"]
    assert addresses(over_udp(dns.port, question("Shop.TEST", TYPE_AAAA))) == ["2001:db8::1"]
    assert addresses(over_tcp(dns.port, question("a.b.shop.test"))) == ["192.0.2.1", "192.0.2.2"]
    assert dns.questions == [("shop.test", "A", False), ("shop.test", "AAAA", False), ("a.b.shop.test", "A", True)]


def test_answers_take_turns_and_the_last_one_stays(dns: DnsServer) -> None:
    told = [over_udp(dns.port, question("turn.test")) for _ in range(4)]
    assert [code(message) for message in told] == [0, 2, 0, 0]
    assert [addresses(message) for message in told] == [["192.0.2.1"], [], ["10.0.0.1"], ["10.0.0.1"]]
    assert addresses(over_udp(dns.port, question("turn.test", TYPE_AAAA))) == []


def test_codes_are_told_and_unknown_names_do_not_exist(dns: DnsServer) -> None:
    asked = ["gone.test", "no.test", "nobody.test", "shop.test"]
    assert [code(over_udp(dns.port, question(name))) for name in asked] == [3, 5, 3, 0]


def test_a_long_answer_is_cut_over_udp_and_whole_over_tcp(dns: DnsServer) -> None:
    short = over_udp(dns.port, question("many.test"))
    assert len(short) <= 512
    assert short[2] & 0x02, "says that it was cut"
    assert len(addresses(over_tcp(dns.port, question("many.test")))) == 200


def test_a_circle_of_names_ends(dns: DnsServer) -> None:
    assert addresses(over_tcp(dns.port, question("circle.test"))) == []


@given(st.binary(min_size=2, max_size=80))
def test_whatever_is_asked_the_answer_fits_the_question(noise: bytes) -> None:
    async def ask() -> bytes | None:
        return await DnsServer({"*.test": Silence()}).answer(noise, tcp=False)

    said = asyncio.run(ask())
    assert said is not None
    assert said[:2] == noise[:2]


# What a fetcher makes of them


@pytest.fixture(scope="module")
def here() -> Iterator[World]:
    with world() as made:
        yield made


async def test_f47_bad_names_are_typed_and_only_those_that_may_heal_are_tried_again(
    here: World, tmp_path: Path
) -> None:
    expected = {
        "gone": "no such host", "empty": "no such host", "circle": "no such host",
        "broken": "dns", "silent": "dns", "garbage": "dns",
        "late": None, "huge": None, "many": None, "chain0": None,
    }  # fmt: skip
    told = await here.fetch(tmp_path, [f"http://{name}.test/" for name in expected])

    assert {name: told[f"http://{name}.test/"].get("trouble") for name in expected} == expected
    final = {trouble: _is_final(trouble) for trouble in (FailureKind.NO_SUCH_HOST, FailureKind.DNS)}
    assert final == {FailureKind.NO_SUCH_HOST: True, FailureKind.DNS: False}
    assert sum(name == "gone.test" for name, _, _ in here.look().questions) == 2, "once for A, once for AAAA"


def _is_final(trouble: FailureKind) -> bool:
    asked = task("http://x.test/")
    failure = Failure(url=asked.url, trouble=trouble, why="")
    return judge(asked, failure, limits=Limits(), now=0.0).final


SPIDER = """
from trotline import Page, Spider

names = Spider("names", pace="100/s")

seeds = [f"http://{name}.test/{number}" for name in ("gone", "empty", "shop") for number in range(5)]

@names.page(seeds=seeds, key="url")
def page(page: Page):
    yield {"url": page.url}
"""


async def test_f47_a_host_that_does_not_exist_is_asked_for_once_and_its_pages_end_at_once(
    here: World, tmp_path: Path
) -> None:
    (tmp_path / "names.py").write_text(SPIDER)
    here.look()
    await here.trotline(tmp_path, "run", "names.py", "--out", "rows.jsonl", "--json")
    asked = Counter(name for name, _, _ in here.look().questions)
    graves = (await here.trotline(tmp_path, "dead", "names", "--json")).events

    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 5
    assert {(grave["attempt"], grave["why"]) for grave in graves} == {
        (0, "unreachable: gone.test does not exist"),
        (0, "unreachable: empty.test does not exist"),
    }
    assert len(graves) == 10
    # One question for A and one for AAAA: by the robots file, and never again.
    assert (asked["gone.test"], asked["empty.test"]) == (2, 2)
    # The one that does is not asked for at every page either.
    assert asked["shop.test"] == 2


async def test_f47_names_whose_servers_are_silent_delay_nobody_else(here: World, tmp_path: Path) -> None:
    silent = [f"http://s{number}.silent.test/" for number in range(60)]
    healthy = [f"http://s{number}.shop.test/" for number in range(20)]
    # The silent ones are asked for first. What arrives is told in order of arrival.
    told = await here.fetch(tmp_path, [*silent, *healthy], slots=80)

    assert set(list(told)[:20]) == set(healthy)
    assert {told[url]["trouble"] for url in silent} == {"dns"}


async def test_a_lookup_that_hangs_is_given_up_in_its_own_time_and_called_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hanging = threading.Event()

    def hang(*_args: object, **_options: object) -> list[object]:
        hanging.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        async with fetcher(Limits(connect=0.5), allow_private=False) as ours:
            outcome = await ours.fetch(task("http://hangs.test/"))
    finally:
        hanging.set()
    assert isinstance(outcome, Failure)
    assert outcome.trouble is FailureKind.DNS
    assert "no answer within 0.4 s" in outcome.why


async def test_as_many_lookups_as_slots_may_hang_without_stopping_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, real = threading.Event(), socket.getaddrinfo

    def hang(host: str, *args: object, **options: object) -> object:
        if host != "localhost":
            hanging.wait(60)
        return real("127.0.0.1", *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    async with site(ok()) as there, fetcher(slots=41) as ours:
        waiting = [asyncio.create_task(ours.fetch(task(f"http://h{number}.test/"))) for number in range(40)]
        healthy = await ours.fetch(task(there.url(host="localhost")))
        assert isinstance(healthy, Answer), healthy
        assert not any(one.done() for one in waiting)
        for one in waiting:
            one.cancel()
        hanging.set()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_lookups_that_were_given_up_still_count_until_their_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, begun = threading.Event(), []

    def hang(host: str, *_args: object, **_options: object) -> list[object]:
        begun.append(host)
        hanging.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    guarded = resolver.GuardedResolver(Guard(), at_once=3, within=0.2)
    for _ in range(3):
        told = await asyncio.gather(*(guarded.resolve(f"h{n}.test") for n in range(4)), return_exceptions=True)
        assert all(isinstance(error, socket.gaierror) for error in told)
    assert len(begun) == 3, "threads are finite, whatever name servers do"

    hanging.set()
    assert await guarded.resolve("h9.test") == []


async def test_a_lookup_without_a_thread_is_a_failure_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    guarded = resolver.GuardedResolver(Guard(), at_once=1, within=5)
    for _ in range(2):
        with pytest.raises(socket.gaierror, match="cannot start a thread"):
            await guarded.resolve("h.test")


async def test_of_a_thousand_addresses_all_are_judged_and_few_are_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    public = [f"93.184.{number // 250}.{number % 250}" for number in range(1_000)]

    def many(_host: str, port: int, **_options: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in public]

    monkeypatch.setattr(socket, "getaddrinfo", many)
    guarded = resolver.GuardedResolver(Guard(), at_once=1, within=5)
    assert len(await guarded.resolve("many.test", 80)) == resolver.MOST_ADDRESSES

    public.append("10.0.0.1")
    with pytest.raises(Exception, match=r"10\.0\.0\.1"):
        await guarded.resolve("many.test", 80)

"""No call keeps the server busy for long, whatever the batch: proven by counting what each call brings."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench

from trotline.adapters.redis.batch_codec import MOST
from trotline.adapters.redis.lua_layouts import TOKEN_BYTES, MovedTask, NewTask
from trotline.adapters.redis.scripts import Script
from trotline.coordinator.job_observer import survey
from trotline.errors import FrontierUnreachable
from trotline.model.lease import Admission, Lease, Reject, Settled, Settlement
from trotline.model.outcome import Bury, Done, Snooze
from trotline.model.task import Task
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import task, tasks

MUCH = MOST + 500


class Counted:
    """Every call of a frontier, with how many elements it brought."""

    def __init__(self, frontier: Client) -> None:
        self.frontier = frontier
        self.calls: list[tuple[str, int]] = []
        self.heaviest = 0
        """Bytes of the largest of them."""
        self.fail_at: int | None = None
        """The number of the call whose reply is lost."""
        self.first_put = asyncio.Event()
        self._run = frontier._server.run
        frontier._server.run = self.run  # type: ignore[method-assign]

    async def run(self, script: Script, key: str, *args: Any, again: bool = True) -> Any:
        if script.name == "put":
            self.first_put.set()
        self.calls.append((script.name, elements(script.name, args)))
        self.heaviest = max(self.heaviest, sum(len(arg) for arg in args if isinstance(arg, bytes)))
        answer = await self._run(script, key, *args, again=again)
        if self.fail_at == len(self.calls):
            raise FrontierUnreachable("the reply was lost")
        return answer

    @property
    def largest(self) -> int:
        return max(size for _, size in self.calls)


def elements(name: str, args: Sequence[Any]) -> int:
    if name == "put":
        return len(_read(args[2])[1]) // len(NewTask._fields)
    if name == "settle":
        _, _, new, _, _, mores, *_ = _read(args[2])
        return len(new) // len(NewTask._fields) + len(args[4]) // TOKEN_BYTES + sum(map(_rejects, mores))
    if name == "receive_moved_tasks":
        return len(_read(args[0])[1]) // len(MovedTask._fields)
    return (len(_read(args[0], 1)) - 1) // 2 if name == "revive" else 0


def _read(told: bytes, depth: int = 2) -> list[Any]:
    """Lists of lists; what is in them are strings that are no text."""
    values = msgspec.msgpack.decode(told, type=list[msgspec.Raw])
    if depth == 1:
        return values
    return [msgspec.msgpack.decode(each, type=list[msgspec.Raw]) if _is_list(each) else each for each in values]


def _rejects(more: msgspec.Raw) -> int:
    """Three values for each, if there are any at all (settle.lua)."""
    parts = msgspec.msgpack.decode(more, type=list[msgspec.Raw])
    return len(msgspec.msgpack.decode(parts[10], type=list[msgspec.Raw])) // 3 if len(parts) > 10 else 0


def _is_list(packed: msgspec.Raw) -> bool:
    return memoryview(packed)[0] & 0xF0 == 0x90 or memoryview(packed)[0] in (0xDC, 0xDD)


@pytest.fixture(params=[RedisBench, ShardedBench])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[RedisBench]:
    opened = request.param()
    yield opened
    await opened.close()


def children(lease: Lease, count: int) -> tuple[Task, ...]:
    """On several hosts."""
    host = [f"host{number}.example" for number in range(5)]
    return tuple(
        task(f"https://{host[n % 5]}{lease.task.url[-2:]}/{n}", lane=host[n % 5]) for n in range(count)
    )  # fmt: skip


async def test_a_settle_with_any_number_of_children_goes_in_small_calls(bench: RedisBench) -> None:
    frontier = await bench.open()
    counted = Counted(frontier)
    await frontier.put(tasks(4))
    await frontier.seal()
    leases = await frontier.lease("w", 4)
    found = [children(lease, MUCH) for lease in leases[:2]] + [children(leases[2], 700), children(leases[3], 700)]
    ended = await frontier.settle(
        "w", [Settlement(lease, Done(), children=some) for lease, some in zip(leases, found, strict=True)]
    )
    assert ended == [Settled.OK] * 4
    assert counted.largest <= MOST
    progress = await frontier.progress()
    assert (progress.done, progress.leased) == (4, 0)
    assert progress.admitted == 4 + len({child.url for some in found for child in some})


HEAVY: dict[str, dict[str, Any]] = {
    "meta": {"meta": {"found on": "x" * 64_000}},
    "a body": {"method": "POST", "body": b"x" * 64_000},
    "headers": {"headers": (("accept", "x" * 64_000),)},
}


@pytest.mark.parametrize("fields", HEAVY.values(), ids=HEAVY)
async def test_what_tasks_carry_along_counts_by_its_bytes(bench: RedisBench, fields: dict[str, Any]) -> None:
    """A server takes half a gigabyte in one call at most, and hangs up beyond: no page would ever be settled."""
    frontier = await bench.open()
    await frontier.put([task("https://shop.example/1"), *(task(f"https://shop.example/m{n}") for n in range(200))])
    counted = Counted(frontier)
    await frontier.put([task(f"https://shop.example/p{n}", **fields) for n in range(200)])
    leases = await frontier.lease("w", 201)
    found = tuple(
        task(f"https://host{n % 5}.example/{n}", lane=f"host{n % 5}.example", **fields) for n in range(200)
    )  # fmt: skip
    ends = [Settlement(leases[0], Done(), children=found)]
    for lease in leases[1:]:
        moved_to = msgspec.structs.replace(lease.task, url=lease.task.url + "/moved", **fields)
        ends.append(Settlement(lease, Snooze(0.0, "moved", task=moved_to)))
    assert await frontier.settle("w", ends) == [Settled.OK] * 201
    assert counted.heaviest < 5_000_000
    assert (await frontier.progress()).admitted == 201 + 200 + 200


async def test_a_put_and_a_revival_of_any_size_go_in_small_calls(bench: RedisBench) -> None:
    frontier = await bench.open()
    counted = Counted(frontier)
    assert await frontier.put(tasks(MUCH)) == [Admission.NEW] * MUCH
    leases = await frontier.lease("w", 1000)
    leases += await frontier.lease("w", 1000)
    assert len(leases) == MUCH
    await frontier.settle("w", [Settlement(lease, Bury("odd")) for lease in leases])
    assert await frontier.revive(why="odd") == MUCH
    assert counted.largest <= MOST
    assert (await frontier.progress()).waiting == MUCH


async def test_a_stale_lease_with_many_children_leads_nowhere(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(1))
    [lease] = await frontier.lease("w", 1)
    await frontier.leave("w")
    assert await frontier.settle("w", [Settlement(lease, Done(), children=children(lease, MUCH))]) == [Settled.STALE]
    assert (await frontier.progress()).admitted == 1


async def test_a_lease_that_is_lost_between_the_calls_admits_no_more(bench: RedisBench) -> None:
    """And its page is visited again: what came in before is known by then."""
    frontier = await bench.open()
    other = await bench.again()
    await frontier.put(tasks(1))
    await frontier.seal()
    [lease] = await frontier.lease("w", 1)
    counted = Counted(frontier)
    settled: list[Settled] = []

    async def leave_in_between() -> None:
        await counted.first_put.wait()
        await other.leave("w")

    async def settle() -> None:
        settled.extend(await frontier.settle("w", [Settlement(lease, Done(), children=children(lease, 5 * MOST))]))

    await asyncio.gather(settle(), leave_in_between())
    progress = await frontier.progress()
    assert not await frontier.finished()
    assert progress.waiting + progress.leased + progress.done == progress.admitted
    if settled == [Settled.STALE]:
        leased: list[Lease] = []
        while not any(each.task.url == lease.task.url for each in leased):
            more = await frontier.lease("v", 1000)
            assert more, "its page is not visited again"
            leased += more
        [again] = [each for each in leased if each.task.url == lease.task.url]
        ended = await frontier.settle("v", [Settlement(again, Done(), children=children(again, 5 * MOST))])
        assert ended == [Settled.OK]
    assert (await frontier.progress()).admitted == 1 + 5 * MOST


@pytest.mark.parametrize("lost", range(1, 7))
async def test_a_reply_that_is_lost_among_many_is_made_good_by_asking_again(lost: int) -> None:
    bench = RedisBench()
    try:
        frontier = await bench.open()
        await frontier.put(tasks(4))
        leases = await frontier.lease("w", 4)
        ends = [Settlement(lease, Done(), children=children(lease, 800)) for lease in leases[:3]]
        ends.append(Settlement(leases[3], Done(), children=children(leases[3], MUCH)))
        counted = Counted(frontier)
        counted.fail_at = lost
        with pytest.raises(FrontierUnreachable):
            await frontier.settle("w", ends)
        assert await frontier.settle("w", ends) == [Settled.OK] * 4
        progress = await frontier.progress()
        assert (progress.done, progress.leased) == (4, 0)
        assert progress.admitted == 4 + 3 * 800 + MUCH
    finally:
        await bench.close()


async def test_a_worker_with_any_number_of_leases_goes_in_small_steps(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(MUCH))
    for worker in ("leaver", "dead"):
        held = 0
        while leases := await frontier.lease(worker, 1000):
            held += len(leases)
        assert held == MUCH
        if worker == "leaver":
            assert await frontier.leave(worker) == MUCH
            assert (await frontier.progress()).leased == 0
    bench.jump(16.0)
    again: list[Lease] = []
    for _ in range(20):
        again += await frontier.lease("w", 1000)
    assert len({lease.token for lease in again}) == len(again) == MUCH
    assert {lease.task.attempt for lease in again} == {1}
    assert [view.name for view in await frontier.workers()] == ["w"]


async def test_what_a_worker_does_not_know_of_goes_back_in_small_steps(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(MUCH))
    leases = await frontier.lease("w", 1000) + await frontier.lease("w", 1000)
    known = leases[::50]
    assert await frontier.holds("w", [lease.token for lease in known]) == MUCH - len(known)
    assert (await frontier.progress()).leased == len(known)


async def test_any_number_of_bad_records_of_one_page_is_counted(bench: RedisBench) -> None:
    frontier = await bench.open()
    counted = Counted(frontier)
    await frontier.put(tasks(1))
    [lease] = await frontier.lease("w", 1)
    rejects = tuple(Reject(kind="page", why=f"no price in row {number % 700}", data="{}") for number in range(5 * MOST))
    assert await frontier.settle("w", [Settlement(lease, Done(), rejects=rejects)]) == [Settled.OK]
    assert counted.largest <= MOST
    progress = await frontier.progress()
    assert progress.tallies["records rejected"] == 5 * MOST
    assert sum((await frontier.reasons()).values()) == 5 * MOST
    kept = len(await frontier.graves(limit=10 * MOST))
    assert kept + progress.tallies.get("records rejected and not kept", 0) == 5 * MOST


async def commands(client: Client) -> int:
    """That the server has executed, also those of scripts."""
    found = await client._server.ask("INFO", "commandstats")
    text = found.decode() if isinstance(found, bytes) else str(found)
    return sum(int(part.partition("calls=")[2].partition(",")[0]) for part in text.splitlines() if "calls=" in part)


async def cost(client: Client, look: Callable[[], Awaitable[Any]]) -> int:
    """In commands; those that count them are left out."""
    alone = await commands(client)
    alone = await commands(client) - alone
    before = await commands(client)
    await look()
    return await commands(client) - before - alone


async def test_a_look_costs_the_same_whatever_the_number_of_lanes() -> None:
    """A page that is refreshed each second reads counters, workers and notes; only a survey walks the lanes."""
    bench, costs, surveys = RedisBench(), [], []
    for lanes in (10, 2000):
        client = await bench.open()
        await client.put([task(f"https://h{n}.example/", lane=f"h{n}.example") for n in range(lanes)])

        async def look(client: Client = client) -> None:
            await client.progress()
            await client.workers()
            await client.opened.console.read_notes([f"series/{n}" for n in range(12)])

        async def walk(client: Client = client, lanes: int = lanes) -> None:
            found = await survey(client.opened.console)
            assert (found.lanes, found.waiting) == (lanes, lanes)

        await look()
        costs.append(await cost(client, look))
        surveys.append(await cost(client, walk))
    assert costs[0] == costs[1]
    assert surveys[1] <= 2000 * 2.1 + 20, "of each lane the length of its queue and of its delayed tasks"
    await bench.close()

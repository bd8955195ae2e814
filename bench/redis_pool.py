"""What a proxy pool costs the Redis server, per page: CPU of lease and settle beside the same lanes without a pool, and
bytes of memory per (proxy, lane).

    python -m bench.redis_pool [--pool 10000] [--lanes 1000] [--pages 24] [--rounds 5] [--build debian|wheel] [--calls]

Two loads: 8 pages of a lane in a lease of 64, and 1 page of each of 64 lanes. Two states of the rings: `new`, in which
each visit goes through a member that the lane never used, and `used`, in which the lane has used them all. Each round
measures each of them once, in another order; the cost of the pool is the median of the differences within a round. The
clock is given, so that every round makes the same calls.
"""

import argparse
import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import xxhash
from redis import Redis

from bench.redis_frontier import ServerMeter
from trotline.adapters.redis import keys, lua_layouts
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.pool_members import member_field
from trotline.model.job import LaneRules
from trotline.model.lease import LaneFeedback, Lease, Settlement
from trotline.model.outcome import Done
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import MemberResult, Pool, PoolMember, PoolRules, lane_of
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.rules.proxy_ring import BEST, NEW, UNITS
from trotline.testing.clients import redis_client
from trotline.testing.redis_server import BUILDS, DEBIAN, redis

BATCH = 64
POOL = "dc"
MEMBER_INTERVAL = 1.0
INTERVALS = {8: 0.14, 1: 1.5}
"""Pages of a lane in a batch -> between two starts of the lane: so many are within the horizon of a lease."""
STEP = 2.0
"""After it, the lane may be served again as often."""
DIRECT, FRESH, USED = "direct", "new", "used"
STATES = (DIRECT, FRESH, USED)
CPU_GOAL, BYTES_GOAL = 4.0, 120.0


@dataclass
class Clock:
    now: float


@dataclass(frozen=True)
class JobTransaction:
    """One measurement: microseconds of CPU per page."""

    lease: float
    settle: float

    @property
    def both(self) -> float:
        return self.lease + self.settle


@dataclass(frozen=True)
class Load:
    members: int
    lanes: int
    pages: int
    """Of each lane."""


@dataclass
class Found:
    turns: dict[tuple[int, str], list[JobTransaction]] = field(default_factory=dict)
    bytes_in_ring: float = 0.0
    bytes_in_quarantine: float = 0.0
    bytes_in_growth: float = 0.0
    """In quarantine, while the hash table of the sorted set still has its smaller half beside it."""
    calls: dict[tuple[int, str], list[str]] = field(default_factory=dict)

    def extra(self, per_lane: int, state: str) -> list[float]:
        """What the pool added, round by round."""
        pairs = zip(self.turns[per_lane, state], self.turns[per_lane, DIRECT], strict=True)
        return [with_pool.both - direct.both for with_pool, direct in pairs]


def lane_names(count: int, pool: str) -> list[str]:
    return [lane_of(f"h{number:05d}.example", pool) for number in range(count)]


def tasks(lanes: Sequence[str], pages: int) -> Iterator[list[Task]]:
    for page in range(pages):
        for start in range(0, len(lanes), 500):
            yield [_task(lane, page) for lane in lanes[start : start + 500]]


def _task(lane: str, page: int) -> Task:
    url = f"https://{lane.partition(' ')[0]}/catalogue/item/{page:07d}/".ljust(60, "x")
    number = xxhash.xxh3_64_intdigest(url.encode()) - 2**63 or 1
    return Task(url=url, route="product", lane=lane, fingerprint=number, site="shop")


def pool_of_size(count: int, version: float) -> Pool:
    members = tuple(PoolMember(xxhash.xxh3_64_intdigest(str(number).encode()) % 2**48) for number in range(count))
    return Pool(name=POOL, version=version, rules=PoolRules(interval=MEMBER_INTERVAL), members=members)


def use_all(server: Any, pool: Pool, lanes: Iterable[str], together: int) -> None:
    """As if each lane had visited a page through every member, so many in a batch: lanes x members visits would take an
    hour."""
    single = [
        b"%b%b%b%b" % (member_field(member.id), number.to_bytes(4, "little"), bytes(5), bytes([NEW, 0, 1, 0, 0]))
        for number, member in enumerate(pool.members, 1)
    ]
    packed = [b"".join(single[start : start + together]) for start in range(0, len(single), together)]
    ring = lua_layouts.CALM_RING.pack(len(single), 1)
    for lane in lanes:
        for start in range(0, len(packed), 1000):
            server.rpush(keys.ring(0, lane), *packed[start : start + 1000])
        server.hset(keys.rings(0), lane, ring)


def quarantine_all(server: Any, pool: Pool, lanes: Iterable[str], now: float) -> None:
    """As if every member were banned in each lane."""
    for lane in lanes:
        due = {
            member_field(member.id)
            + number.to_bytes(3, "little")
            + (int(now) % lua_layouts.RESTING_NUMBERS).to_bytes(3, "little")
            + bytes([0, BEST // 2 * 4]): int((now + number) * UNITS) * lua_layouts.RESTING_SCALE
            + lua_layouts.RESTING_STRIKE
            for number, member in enumerate(pool.members, 1)
        }
        server.zadd(keys.resting(0, lane), due)


async def tx(url: str, load: Load, per_lane: int, state: str) -> tuple[JobTransaction, list[str]]:
    """One job: all its pages are put, then leased and settled."""
    server: Any = Redis.from_url(url)
    server.flushall()
    clock = Clock(1_700_000_000.0)
    jobs = RedisJobs(connect(url), now=lambda: clock.now)
    rate = Rate(1 / INTERVALS[per_lane])
    job = await jobs.start("bench", LaneRules(default=Pace(rate=rate, concurrency=1000, slowest=rate), robots=False))
    lanes = lane_names(load.lanes, "" if state == DIRECT else POOL)
    pool = pool_of_size(load.members, clock.now)
    await (await jobs.proxy_pools()).register(pool)
    if state == USED:
        use_all(server, pool, lanes, per_lane)
    frontier = redis_client(connect(url), job, now=lambda: clock.now)
    for batch in tasks(lanes, load.pages):
        await frontier.put(batch)
    await frontier.seal()
    server.config_resetstat()
    found = await _work(frontier, ServerMeter(url), clock, ("",) if state == DIRECT else ("", POOL))
    calls = commands(server, load.lanes * load.pages)
    progress = await frontier.progress()
    assert progress.done == load.lanes * load.pages, progress
    await frontier.close()
    await jobs.close()
    micros = 1e6 / progress.done
    return JobTransaction(found[0] * micros, found[1] * micros), calls


async def _work(frontier: Any, meter: ServerMeter, clock: Clock, pools: Sequence[str]) -> tuple[float, float]:
    good = LaneFeedback(Kind.OK, took=0.1)
    leasing = settling = 0.0
    while True:
        started, held = meter.cpu(), list[list[Lease]]()
        while leases := await frontier.lease("worker", BATCH, pools=pools):
            held.append(leases)
        leased = meter.cpu()
        if not held:
            return leasing, settling
        clock.now += 0.1
        settled = [
            [Settlement(lease, Done(), news=good, member=MemberResult.GOOD) for lease in leases] for leases in held
        ]
        for some in settled:
            await frontier.settle("worker", some)
        leasing, settling = leasing + leased - started, settling + meter.cpu() - leased
        clock.now += STEP


def commands(server: Any, pages: int) -> list[str]:
    """Calls and microseconds per page, by command: those within scripts too."""
    stats = server.info("commandstats")
    rows = sorted(
        (
            (figures["usec"] / pages, figures["calls"] / pages, name.removeprefix("cmdstat_"))
            for name, figures in stats.items()
        ),
        reverse=True,
    )
    return [f"{name}: {calls:.2f} calls, {usec:.2f} us a page" for usec, calls, name in rows[:16]]


def memory(url: str, load: Load) -> tuple[float, float, float]:
    """Bytes per (proxy, lane), in the ring, in quarantine, and there just after it was filled. Some lanes are enough:
    each has keys of its own."""
    server: Any = Redis.from_url(url)
    meter = ServerMeter(url)
    pool = pool_of_size(load.members, 0.0)
    lanes = lane_names(min(load.lanes, 100), POOL)
    pairs = len(lanes) * load.members
    server.flushall()
    empty = meter.size()
    use_all(server, pool, lanes, 1)
    in_ring = (meter.size() - empty) / pairs
    server.flushall()
    empty = meter.size()
    quarantine_all(server, pool, lanes, 1_700_000_000.0)
    in_growth = (meter.size() - empty) / pairs
    for lane in lanes:
        # Each look into a hash table that grows moves a part of it.
        server.zmscore(keys.resting(0, lane), server.zrange(keys.resting(0, lane), 0, -1))
    in_quarantine = (meter.size() - empty) / pairs
    server.flushall()
    return in_ring, in_quarantine, in_growth


async def measured(url: str, load: Load, rounds: int) -> Found:
    found = Found()
    kinds = [(per_lane, state) for per_lane in INTERVALS for state in STATES]
    # The first call of a script compiles it.
    await tx(url, Load(load.members, min(64, load.lanes), load.pages), 8, FRESH)
    for number in range(rounds):
        shift = number % len(STATES)
        for per_lane, state in (*kinds[shift:], *kinds[:shift]):
            one, calls = await tx(url, load, per_lane, state)
            found.turns.setdefault((per_lane, state), []).append(one)
            found.calls[per_lane, state] = calls
    found.bytes_in_ring, found.bytes_in_quarantine, found.bytes_in_growth = memory(url, load)
    return found


HEADING = "| pages of a lane in a batch | ring | lease us | settle us | both us | pool adds us | rounds | goal |"


def lines(found: Found) -> Iterator[str]:
    yield HEADING
    yield "|" + "---|" * HEADING.strip("|").count("|") + "---|"
    for per_lane, state in ((per_lane, state) for per_lane in INTERVALS for state in STATES):
        turns = found.turns[per_lane, state]
        lease, settle = median(each.lease for each in turns), median(each.settle for each in turns)
        cells = [str(per_lane), state, f"{lease:.1f}", f"{settle:.1f}", f"{lease + settle:.1f}"]
        yield "| " + " | ".join([*cells, *_extra(found, per_lane, state)]) + " |"
    yield ""
    for title, size in (
        ("in the ring", found.bytes_in_ring),
        ("in quarantine", found.bytes_in_quarantine),
        ("in quarantine, while its table grows", found.bytes_in_growth),
    ):
        verdict = "met" if size <= BYTES_GOAL else "missed"
        yield f"bytes per (proxy, lane) {title}: {size:.1f} (goal <= {BYTES_GOAL:g}: {verdict})"


def _extra(found: Found, per_lane: int, state: str) -> list[str]:
    if state == DIRECT:
        return ["", "", ""]
    each = sorted(found.extra(per_lane, state))
    goal = f"<= {CPU_GOAL:g}: {'met' if median(each) <= CPU_GOAL else 'missed'}"
    return [f"{median(each):.1f}", f"{each[0]:.1f} to {each[-1]:.1f}", goal]


def main() -> None:
    parser = argparse.ArgumentParser(description="What a proxy pool costs the Redis server, per page.")
    parser.add_argument("--pool", type=int, default=10_000, help="members of the pool")
    parser.add_argument("--lanes", type=int, default=1_000)
    parser.add_argument("--pages", type=int, default=24, help="pages of each lane, a multiple of 8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", choices=BUILDS, default=DEBIAN)
    parser.add_argument("--calls", action="store_true", help="the commands of a page too")
    given = parser.parse_args()
    load = Load(given.pool, given.lanes, given.pages)
    print(f"{load.members:,} members, {load.lanes:,} lanes, {load.pages} pages each; load {os.getloadavg()[0]:.1f}")
    with redis(given.build, {"appendonly": "no"}) as server:
        found = asyncio.run(measured(server.url, load, given.rounds))
    print("\n".join(lines(found)))
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    if given.calls:
        for (per_lane, state), calls in found.calls.items():
            print(f"\n{per_lane} of a lane, {state}\n  " + "\n  ".join(calls))


if __name__ == "__main__":
    main()

"""How long one call keeps a Redis server busy, when as much is asked of it as can be: SLOWLOG tells."""

from collections.abc import Awaitable, Callable
from typing import Any

from bench.frontier_load import rules
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Bury, Done
from trotline.testing.clients import redis_client
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import task

PAGES, LINKS, LEVELS = 64, 5_000, 20_000
GOAL_MS = 100.0


async def slowest_calls(url: str) -> str:
    """A table: what was asked, how many calls took a millisecond or more, and the longest one."""
    client: Any = connect(url)
    await client.config_set("slowlog-log-slower-than", 1000)
    await client.config_set("slowlog-max-len", 10_000)
    jobs = RedisJobs(connect(url))
    job = await jobs.start("slowest", rules(1))
    frontier = redis_client(connect(url), job)
    lines = [f"| asked | calls over 1 ms | slowest call (goal: {GOAL_MS:.0f} ms) |", "|---|---|---|"]
    for name, deed in _deeds(frontier):
        await client.slowlog_reset()
        await deed()
        took = [entry["duration"] / 1000 for entry in await client.slowlog_get(10_000)]
        lines.append(f"| {name} | {len(took)} | {max(took, default=0.0):.1f} ms |")
    await frontier.close()
    await client.slowlog_reset()
    await jobs.forget(job.id)
    took = [entry["duration"] / 1000 for entry in await client.slowlog_get(10_000)]
    lines.append(f"| forget the job | {len(took)} | {max(took, default=0.0):.1f} ms |")
    await jobs.close()
    await client.aclose()
    return "\n".join(lines)


def _deeds(frontier: Client) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
    leases: list[Lease] = []

    async def put() -> None:
        await frontier.put([task(f"https://seed.example/{n}", lane="seed.example", priority=1) for n in range(PAGES)])
        leases.extend(await frontier.lease("w", PAGES))

    async def settle() -> None:
        await frontier.settle(
            "w",
            [
                Settlement(lease, Done(), children=tuple(task(f"{lease.task.url}/{n}") for n in range(LINKS)))
                for lease in leases
            ],
        )

    async def levels() -> None:
        await frontier.put([task(f"https://l.example/{n}", lane="l.example", priority=n) for n in range(LEVELS)])

    async def lease() -> None:
        for _ in range(20):
            leases.extend(await frontier.lease("hoarder", 1000))

    async def bury() -> None:
        some = await frontier.lease("v", 1000)
        await frontier.settle("v", [Settlement(each, Bury("odd")) for each in some])

    return [
        (f"put and lease {PAGES} pages", put),
        (f"settle {PAGES} pages with {LINKS:,} new links each", settle),
        (f"put {LEVELS:,} tasks of as many priorities", levels),
        ("lease 1,000 at a time", lease),
        ("leave with all of them", lambda: frontier.leave("hoarder")),
        ("bury a thousand", bury),
        ("revive them", lambda: frontier.revive(why="odd")),
        ("cancel a lane", lambda: frontier.cancel("l.example")),
    ]

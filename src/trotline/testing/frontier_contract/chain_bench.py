"""What tests of chains need beside the bench: their steps, a worker that visits all of them, and counts."""

from typing import Any

from trotline.model.job import Grave
from trotline.model.task import Task
from trotline.testing.frontier_contract.bench import SHOP, Client, finish, task, urls


def step(number: int, chain: str = "basket", lane: str = SHOP, **fields: Any) -> Task:
    return task(url_of(number, chain, lane), lane=lane, chain=chain, **fields)


def steps(count: int, chain: str = "basket", lane: str = SHOP, **fields: Any) -> list[Task]:
    return [step(number, chain, lane, **fields) for number in range(count)]


async def run_all(client: Client, worker: str = "w") -> list[str]:
    """Visit one page after the other until none can be leased."""
    visited: list[str] = []
    while leases := await client.lease(worker, 1):
        visited += urls(leases)
        await finish(client, worker, leases)
    return visited


async def graves_by_url(client: Client) -> dict[str, Grave]:
    return {grave.url: grave for grave in await client.graves(limit=10_000)}


async def counts(client: Client) -> tuple[int, int, int, int]:
    progress = await client.progress()
    return progress.waiting, progress.leased, progress.done, progress.dead


def url_of(number: int, chain: str = "basket", lane: str = SHOP) -> str:
    return f"https://{lane}/{chain}/{number}"

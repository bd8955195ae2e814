"""What a brokered frontier does when a client dies between any two of its steps: a suite for every broker."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from tests.contract.brokered_benches import AnyBrokeredBench

from trotline.frontier.broker_pump import Pump
from trotline.model.lease import Admission, Settlement
from trotline.model.outcome import Done
from trotline.ports.broker_books import CLAIM
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import tasks

COUNT = 250


class Died(BaseException):
    """Nothing after it is executed in that client, as after kill -9."""


def dies(client: Client, step: str) -> None:
    """The client dies at this step. After "+" the step's call still takes effect, and its answer is lost."""
    pump = pump_of(client)
    where, _, verb = step.rstrip("+").partition(".")
    target = getattr(pump, f"_{where}")
    call: Callable[..., object] = getattr(target, verb)

    async def last(*args: object, **named: object) -> None:
        if step.endswith("+"):
            await call(*args, **named)  # type: ignore[misc]
        raise Died

    setattr(target, verb, last)


def pump_of(client: Client) -> Pump:
    pump: Pump = client.opened.frontier._pump  # type: ignore[attr-defined]
    return pump


async def crash(bench: AnyBrokeredBench, client: Client) -> None:
    """Its connections end, and nothing else happens."""
    bench._clients.remove(client)
    pump = pump_of(client)
    await bench.cut(pump._broker)
    await pump._frontier.close()


async def run_to_the_end(client: Client) -> Counter[str]:
    visited: Counter[str] = Counter()
    while leases := await client.lease("other", 100):
        visited.update(lease.task.url for lease in leases)
        await client.settle("other", [Settlement(lease, Done()) for lease in leases])
    return visited


PUTTING = ("books.unpublished", "books.unpublished+", "broker.publish", "broker.publish+")
LEASING = ("broker.receive", "broker.receive+", "books.unshelve", "books.unshelve+", "broker.ack", "broker.ack+")


class BrokeredKills:
    """Inherit it, with a fixture `bench`."""

    @pytest.mark.parametrize("step", PUTTING)
    async def test_a_client_that_dies_while_it_puts_loses_nothing(self, bench: AnyBrokeredBench, step: str) -> None:
        victim, other = await bench.open(), await bench.again()
        wanted = tasks(COUNT)
        dies(victim, step)
        with pytest.raises(Died):
            await victim.put(wanted)
        await crash(bench, victim)
        assert (await other.progress()).waiting == COUNT
        assert set(await other.put(wanted)) == {Admission.DUPLICATE}
        # Another client publishes what the victim took to publish, when its time is over.
        bench.jump(CLAIM + 1)
        visited = await run_to_the_end(other)
        assert visited == Counter(task.url for task in wanted)
        progress = await other.progress()
        assert (progress.waiting, progress.leased, progress.done) == (0, 0, COUNT)

    @pytest.mark.parametrize("step", PUTTING)
    async def test_a_client_that_dies_while_it_settles_loses_no_child(
        self, bench: AnyBrokeredBench, step: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        victim, other = await bench.open(), await bench.again()
        [parent, *children] = tasks(COUNT)
        await victim.put([parent])
        [lease] = await victim.lease("w", 1)
        monkeypatch.setattr(type(pump_of(victim)._broker), "linger", 0.0)
        dies(victim, step)
        with pytest.raises(Died):
            await victim.settle("w", [Settlement(lease, Done(), children=tuple(children))])
        await crash(bench, victim)
        bench.jump(CLAIM + 1)
        assert await run_to_the_end(other) == Counter(task.url for task in children)
        assert (await other.progress()).done == COUNT

    @pytest.mark.parametrize("step", LEASING)
    async def test_a_client_that_dies_while_it_receives_loses_and_doubles_nothing(
        self, bench: AnyBrokeredBench, step: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("trotline.frontier.broker_pump.ACK_AFTER", 0.0)
        victim, other = await bench.open(), await bench.again()
        wanted = tasks(COUNT)
        await other.put(wanted)
        dies(victim, step)
        visited: Counter[str] = Counter()
        with pytest.raises(Died):
            # A message is acknowledged by the next call.
            for _ in range(3):
                leases = await victim.lease("w", 10)
                visited.update(lease.task.url for lease in leases)
                await victim.settle("w", [Settlement(lease, Done()) for lease in leases])
        await crash(bench, victim)
        async with asyncio.timeout(30):
            # The server notices the end of a connection a moment later.
            while sum(visited.values()) < COUNT:
                visited += await run_to_the_end(other)
        assert visited == Counter(task.url for task in wanted)
        assert await other.lease("other", 10) == []
        progress = await other.progress()
        assert (progress.waiting, progress.leased, progress.done) == (0, 0, COUNT)

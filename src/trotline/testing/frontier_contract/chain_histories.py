"""C1 over random histories: whatever workers and operators do, no step overtakes another."""

from random import Random

import pytest

from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.model.task import Task
from trotline.testing.frontier_contract.bench import SHOP, Bench, Client, finish
from trotline.testing.frontier_contract.chain_bench import counts, step, url_of


class ChainHistories:
    @pytest.mark.parametrize("seed", range(2))
    async def test_c1_whatever_workers_and_operators_do_no_step_overtakes_another(
        self, bench: Bench, seed: int
    ) -> None:
        history = _History(bench, await bench.open(), Random(seed))
        for _ in range(120):
            await history.go_on()
        await history.finish()


class _History:
    """Random calls, and a model of the chains: the steps of each that are not done, in their order."""

    def __init__(self, bench: Bench, frontier: Client, chance: Random) -> None:
        self._bench, self._frontier, self._chance = bench, frontier, chance
        self._open: dict[str, list[str]] = {name: [] for name in "abcdef"}
        self._failed: set[str] = set()
        self._held: dict[str, list[Lease]] = {}
        self._number = self._done = 0

    async def go_on(self) -> None:
        calls = [self._put, self._lease, self._lease, self._settle, self._settle, self._leave, self._die, self._revive]
        await self._chance.choices(calls, [4, 3, 3, 4, 4, 1, 1, 1])[0]()
        await self._check()

    async def finish(self) -> None:
        await self._frontier.revive()
        self._failed.clear()
        await self._die()
        while leases := await self._frontier.lease("last", 5):
            for lease in leases:
                self._is_next(lease)
            await finish(self._frontier, "last", leases)
            for lease in leases:
                self._end(lease)
        assert not any(self._open.values())
        assert await counts(self._frontier) == (0, 0, self._done, 0)

    def _step(self) -> Task:
        self._number += 1
        name = self._chance.choice(list(self._open))
        self._open[name].append(url_of(self._number, name))
        return step(self._number, name, priority=self._chance.randrange(100))

    async def _put(self) -> None:
        given = [self._step() for _ in range(self._chance.randrange(1, 6))]
        assert await self._frontier.put(given) == [Admission.NEW] * len(given)

    async def _lease(self) -> None:
        worker = f"w{self._chance.randrange(4)}"
        for lease in await self._frontier.lease(worker, self._chance.randrange(1, 4)):
            self._is_next(lease)
            self._held.setdefault(worker, []).append(lease)

    def _is_next(self, lease: Lease) -> None:
        name = lease.task.chain
        assert name not in self._failed
        assert lease.task.url == self._open[name][0], "the first that is not done"
        assert lease.task.url not in [each.task.url for held in self._held.values() for each in held]

    async def _settle(self) -> None:
        if not self._held:
            return
        worker = self._chance.choice(list(self._held))
        leases = self._held.pop(worker)
        settlements = [self._settlement(lease) for lease in leases]
        assert await self._frontier.settle(worker, settlements) == [Settled.OK] * len(leases)

    def _settlement(self, lease: Lease) -> Settlement:
        outcomes: list[Outcome] = [Done(), Done(), Done(), Retry(0, "503"), Snooze(0, "429"), Bury("broken: 500")]
        outcome = self._chance.choice(outcomes)
        if isinstance(outcome, Bury):
            self._failed.add(lease.task.chain)
        if not isinstance(outcome, Done):
            return Settlement(lease, outcome)
        self._end(lease)
        return Settlement(lease, outcome, children=tuple(self._step() for _ in range(self._chance.randrange(3))))

    def _end(self, lease: Lease) -> None:
        assert self._open[lease.task.chain].pop(0) == lease.task.url
        self._done += 1

    async def _leave(self) -> None:
        if self._held:
            worker = self._chance.choice(list(self._held))
            assert await self._frontier.leave(worker) == len(self._held.pop(worker))

    async def _die(self) -> None:
        self._bench.jump(20)
        self._held.clear()
        # The next lease rescues what they held.
        await self._frontier.lease("rescuer", 0)

    async def _revive(self) -> None:
        dead = sum(len(self._open[name]) for name in self._failed)
        assert await self._frontier.revive() == dead
        self._failed.clear()

    async def _check(self) -> None:
        waiting, leased, done, dead = await counts(self._frontier)
        assert dead == sum(len(self._open[name]) for name in self._failed)
        assert done == self._done
        assert waiting + leased == sum(map(len, self._open.values())) - dead
        view = {each.lane: each.waiting for each in await self._frontier.lanes()}
        assert view.get(SHOP, 0) == waiting

"""What operators do to the state machine's frontier: steer it, look at it, raise the dead, announce the end."""

import asyncio

from hypothesis import strategies as st
from hypothesis.stateful import rule

from trotline.model.job import LaneView, State
from trotline.model.pace import Pace
from trotline.testing.frontier_contract.bench import FAST, Client
from trotline.testing.frontier_hands import LANES, Hands
from trotline.testing.frontier_model import DEAD, LEASED, WAITING

pick = st.integers(0, 1_000)
_lane = st.sampled_from(LANES)
_job_or_lane = st.sampled_from((None, *LANES))
_wanted = st.sampled_from((State.PAUSED, State.DRAINING, State.CANCELLED))


async def _all_lanes(operator: Client) -> list[LaneView]:
    return [view async for page in operator.all_lanes() for view in page]


class Operators(Hands):
    """The operators' rules, in addition to those of workers and seeders."""

    @rule(wanted=_wanted, lane=_job_or_lane, client=pick)
    def steer(self, wanted: State, lane: str | None, client: int) -> None:
        operator = self._client(client)
        if wanted is State.PAUSED:
            self.run(operator.steer(State.PAUSED, lane))
        elif wanted is State.DRAINING:
            self.run(operator.steer(State.DRAINING, lane))
        elif lane is None:
            assert self.run(operator.steer(State.CANCELLED)) == 0
        else:
            assert self.run(operator.steer(State.CANCELLED, lane)) == self.model.cancelled(lane)
            return
        self.model.standing[lane] = wanted

    @rule(which=pick, client=pick)
    def resume(self, which: int, client: int) -> None:
        """Half of the time everything: a history that mostly stands still finds little."""
        held = sorted(self.model.standing, key=str)
        if held and which % 2:
            held = [held[which % len(held)]]
        for lane in held:
            self.run(self._client(client).steer(State.RUNNING, lane))
            del self.model.standing[lane]

    @rule(lane=_lane, client=pick, concurrency=st.sampled_from((1, 2, 10_000)))
    def set_pace(self, lane: str, client: int, concurrency: int) -> None:
        self.run(self._client(client).set_pace(lane, Pace(rate=FAST, concurrency=concurrency, slowest=FAST)))
        self.model.repaced(lane, concurrency)

    @rule(which=pick, client=pick)
    def look_around(self, which: int, client: int) -> None:
        operator = self._client(client)
        for view in self.run(operator.workers()):
            assert view.leased == len(self.model.held_by(view.name))
        leased = self.model.having(LEASED)
        under_way = sorted((each.url, each.worker) for each in self.run(operator.in_flight(1_000)))
        assert under_way == sorted((known.task.url, known.worker) for known in leased)
        lanes = {view.lane: (view.waiting, view.leased) for view in self.run(_all_lanes(operator))}
        waiting = self.model.having(WAITING)
        for lane in {known.task.lane for known in waiting + leased}:
            counted = tuple(sum(known.task.lane == lane for known in some) for some in (waiting, leased))
            assert lanes[lane] == counted
        if not self.model.tasks:
            return
        known = list(self.model.tasks.values())[which % len(self.model.tasks)]
        waits = "delayed" if known.due > self.bench.now() else "waiting"

        found = self.run(operator.whereabouts(known.task))

        assert found.state == {WAITING: waits, LEASED: "leased", DEAD: "dead"}.get(known.state, "ended")
        assert found.worker == known.worker
        assert found.why.startswith(known.why)

    @rule(which=pick, client=pick)
    def revive_one(self, which: int, client: int) -> None:
        if not self.model.having(DEAD):
            return
        known = self.model.pick(DEAD, which)

        assert self.run(self._client(client).revive(ids=[known.task.id])) == 1
        self.model.revived([known], self.bench.now())

    @rule(client=pick, why=st.sampled_from(("blocked", "broken: 500", "killed", "nothing like it")))
    def revive_by_reason(self, client: int, why: str) -> None:
        chosen = [known for known in self.model.having(DEAD) if known.why.startswith(why)]

        assert self.run(self._client(client).revive(why=why)) == len(chosen)
        self.model.revived(chosen, self.bench.now())

    @rule(client=pick)
    def seal(self, client: int) -> None:
        self.run(self._client(client).seal())
        self.model.sealed = True

    @rule()
    def announce_by_all_at_once(self) -> None:
        async def everyone() -> list[bool]:
            return await asyncio.gather(*(client.announce_finish() for client in self.clients * 2))

        assert self.run(everyone()).count(True) == (1 if self.model.announce() else 0)

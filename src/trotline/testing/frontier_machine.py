"""A frontier against a plain model of it: random histories, and after every step the books must agree.

    FileMachine = frontier_machine(MyBench)
    TestFileMachine = FileMachine.TestCase

The model says what must be, what must not be, and stays silent where a frontier is free: which of several
lanes is served first, where a task that was given back stands in the queue, how long a troubled lane rests.
"""

import asyncio
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from trotline.model.job import State
from trotline.model.lease import Admission, LaneFeedback, Lease, Settled, Settlement
from trotline.model.outcome import Bury, Done
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract.bench import Bench
from trotline.testing.frontier_hands import URLS
from trotline.testing.frontier_model import DEAD, DONE, LEASED, WAITING
from trotline.testing.frontier_operators import Operators

_some_task = st.tuples(st.integers(0, URLS - 1), st.sampled_from((0, 0, 0, 10)))
_some_tasks = st.lists(_some_task, max_size=6)
_pick = st.integers(0, 1_000)
_wait = st.sampled_from((0, 0, 5, 40))
_why = st.sampled_from(("blocked: 403", "blocked: captcha", "broken: 500"))
_news = st.sampled_from((None, None, None, None, Kind.OK, Kind.OK, Kind.BROKEN, Kind.THROTTLED))


class FrontierMachine(Operators):
    """The rules. `make_bench` comes from `frontier_machine`.

    A rule with nothing to act on does nothing, and no precondition asks the model: where processes race, who holds
    which lease is chance, and a history that is played again must still draw the same rules.
    """

    def teardown(self) -> None:
        try:
            self._everything_ends()
        finally:
            self.run(self.bench.close())
            self.runner.close()

    # Putting

    @rule(drafts=_some_tasks, client=_pick)
    def put(self, drafts: list[tuple[int, int]], client: int) -> None:
        batch = [self._task(*draft) for draft in drafts]

        answers = self.run(self._client(client).put(batch))

        assert answers == self.model.put(batch, self.bench.now())

    @rule(draft=_some_task)
    def put_by_two_at_once(self, draft: tuple[int, int]) -> None:
        one = self._task(*draft)

        async def both() -> list[list[Admission]]:
            return await asyncio.gather(*(client.put([one]) for client in self.clients))

        answers = [answer for [answer] in self.run(both())]

        expected = [self.model.put([one], self.bench.now())[0] for _ in self.clients]
        assert sorted(answers) == sorted(expected)

    # Leasing

    @rule(worker=_pick, client=_pick, limit=st.integers(1, 8))
    def lease(self, worker: int, client: int, limit: int) -> None:
        self._lease(self._client(client), self._worker(worker), limit)

    @rule(limit=st.integers(1, 4))
    def lease_by_all_at_once(self, limit: int) -> None:
        async def everyone() -> list[list[Lease]]:
            asking = [self._client(n).lease(worker, limit) for n, worker in enumerate(self.workers)]
            return await asyncio.gather(*asking)

        for worker, leases in zip(self.workers, self.run(everyone()), strict=True):
            self.model.leased(worker, leases, self.bench.now())

    # Settling

    @rule(which=_pick, client=_pick, wait=_wait, why=_why, news=_news, children=_some_tasks, end=st.integers(0, 4))
    def settle(
        self, which: int, client: int, wait: int, why: str, news: Kind | None, children: list[tuple[int, int]], end: int
    ) -> None:
        if not self.model.having(LEASED):
            return
        worker, lease = self._held(which)
        outcome = self._outcome(end, wait, why, lease.task)
        offspring = tuple(self._task(*child) for child in children) if isinstance(outcome, Done) else ()
        rest = 30.0 if news is Kind.THROTTLED else 0.0
        learned = LaneFeedback(news, rest=rest) if news is not None else None

        answers = self.run(self._client(client).settle(worker, [Settlement(lease, outcome, offspring, news=learned)]))

        assert answers == [Settled.OK]
        self.model.settled(lease, outcome, offspring, learned, self.bench.now())
        self.stale.append((worker, lease))

    @rule(which=_pick, client=_pick)
    def settle_twice_in_one_call(self, which: int, client: int) -> None:
        if not self.model.having(LEASED):
            return
        worker, lease = self._held(which)
        never = self._task(URLS + 1, 0)

        answers = self.run(
            self._client(client).settle(
                worker, [Settlement(lease, Done()), Settlement(lease, Bury("twice"), children=(never,))]
            )
        )

        assert answers == [Settled.OK, Settled.STALE]
        self.model.settled(lease, Done(), (), None, self.bench.now())
        self.stale.append((worker, lease))

    @rule(which=_pick, client=_pick, wait=_wait, why=_why, end=st.integers(0, 4))
    def settle_stale(self, which: int, client: int, wait: int, why: str, end: int) -> None:
        if not self.stale:
            return
        worker, lease = self.stale[which % len(self.stale)]
        never = self._task(URLS + 1, 0)
        late = Settlement(
            lease,
            self._outcome(end, wait, why, lease.task),
            children=(never,),
            news=LaneFeedback(Kind.THROTTLED, rest=10_000),
        )

        assert self.run(self._client(client).settle(worker, [late])) == [Settled.STALE]

    # Workers come, go and die

    @rule(worker=_pick, client=_pick)
    def beat(self, worker: int, client: int) -> None:
        self.run(self._client(client).beat(self._worker(worker)))

    @rule(worker=_pick, client=_pick)
    def leave(self, worker: int, client: int) -> None:
        name = self._retire(worker)
        held = self.model.given_back(name, self.bench.now())

        assert self.run(self._client(client).leave(name)) == held

    @rule(which=_pick, client=_pick)
    def leave_with_a_guilty_page(self, which: int, client: int) -> None:
        if not self.model.having(LEASED):
            return
        name, lease = self._held(which)
        self._retire(self.workers.index(name))
        held = self.model.given_back(name, self.bench.now(), guilty=lease)

        assert self.run(self._client(client).leave(name, guilty=lease.token)) == held

    @rule(worker=_pick, client=_pick, limit=st.integers(1, 4))
    def vanish(self, worker: int, client: int, limit: int) -> None:
        name = self._retire(worker)
        self._time(21.0)
        self.model.rescued(name, self.bench.now())

        self._lease(self._client(client), self._worker(worker + 1), limit)

    @rule(seconds=st.sampled_from((1.0, 4.0, 12.0, 40.0)))
    def time_passes(self, seconds: float) -> None:
        self._time(seconds)

    @precondition(lambda self: self.bench.durable)
    @rule(client=_pick)
    def a_process_crashes_and_another_comes(self, client: int) -> None:
        place = client % len(self.clients)
        self.run(self.bench.crash(self.clients[place]))
        self.clients[place] = self.run(self.bench.again())

    # What holds after every step

    @invariant()
    def the_books_agree(self) -> None:
        for client in self.clients:
            progress = self.run(client.progress())
            found = (progress.waiting, progress.leased, progress.done, progress.dead)
            assert found == tuple(len(self.model.having(state)) for state in (WAITING, LEASED, DONE, DEAD))
            assert progress.delayed == len(self.model.delayed(self.bench.now()))
            assert progress.sealed == self.model.sealed
            assert progress.state == self.model.standing.get(None, State.RUNNING)
            assert progress.tallies.get("refused: draining", 0) == self.model.refused

    @invariant()
    def finished_means_finished(self) -> None:
        assert self.run(self.clients[-1].finished()) == self.model.ended()

    @invariant()
    def the_graveyard_agrees(self) -> None:
        graves = self.run(self.clients[0].graves(limit=1_000))
        dead = {known.task.id: known.why for known in self.model.having(DEAD)}
        assert {grave.id for grave in graves} == set(dead)
        assert all(grave.why.startswith(dead[grave.id]) for grave in graves)

    # The end

    def _everything_ends(self) -> None:
        """Nothing vanished: when the trouble is over, every task that is not dead can be done, once."""
        client = self.clients[-1]
        for lane in self.model.standing:
            self.run(client.steer(State.RUNNING, lane))
        self.model.standing.clear()
        for worker in self.workers:
            assert self.run(client.leave(worker)) == self.model.given_back(worker, self.bench.now())
        self.run(client.seal())
        self.model.sealed = True
        for _ in range(200):
            if self.model.finished():
                break
            leases = self.run(client.lease("last", 100))
            self.model.leased("last", leases, self.bench.now())
            good = LaneFeedback(Kind.OK)
            settled = self.run(client.settle("last", [Settlement(lease, Done(), news=good) for lease in leases]))
            assert settled == [Settled.OK] * len(leases)
            for lease in leases:
                self.model.settled(lease, Done(), (), good, self.bench.now())
            self.bench.jump(600)
        assert self.model.finished(), f"never leased again: {self.model.having(WAITING)}"
        self.the_books_agree()
        self.finished_means_finished()
        self.announce_by_all_at_once()


def frontier_machine(make_bench: Callable[[], Bench]) -> type[FrontierMachine]:
    """The machine for the backend of these benches; its `TestCase` is what pytest collects."""
    return type("FrontierMachineOnBench", (FrontierMachine,), {"make_bench": staticmethod(make_bench)})

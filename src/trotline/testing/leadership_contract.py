"""The promises of the Leadership port, for every place that can keep them: inherit, and give a `bench`."""

import asyncio
from typing import Any, Protocol

import pytest

from trotline.errors import TermOver
from trotline.model.job import Job, LaneRules
from trotline.model.leadership import Term, Tick
from trotline.model.time import Moment, Seconds
from trotline.ports.jobs import Jobs
from trotline.ports.leadership import RENEW, TERM, Leadership

NIGHTLY = "0 3 * * * UTC"
RULES = LaneRules()


class LeadershipBench(Protocol):
    """What the suite needs to know of a place."""

    async def open(self) -> Leadership:
        """A client, as another process would have it; all clients of a bench see the same, at first empty, place."""
        ...

    async def jobs(self) -> Jobs: ...

    async def end(self, job: Job) -> None:
        """The job is finished now."""
        ...

    def jump(self, seconds: Seconds) -> None:
        """Turn the server's clock forward."""
        ...

    def now(self) -> Moment:
        """The server's time."""
        ...


def tick(at: Moment, schedule: str = NIGHTLY) -> Tick:
    return Tick(at=at, schedule=schedule)


async def lead(leadership: Leadership, candidate: str = "ann", election: str = "shop") -> Term:
    """A term; the election must have no leader, or the candidate as leader."""
    term = await leadership.campaign(election, candidate)
    assert term.holder == candidate, f"{candidate} should lead, but {term.holder} does"
    return term


class LeadershipContract:
    """L1 to L10. A subclass gives a fixture `bench` that is a LeadershipBench."""

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def bench(self) -> LeadershipBench:
        raise NotImplementedError("give the suite a bench")

    async def test_l1_of_many_who_campaign_at_once_one_leads_and_all_hear_who(self, bench: LeadershipBench) -> None:
        clients = [await bench.open() for _ in range(5)]

        terms = await asyncio.gather(
            *(client.campaign("shop", f"candidate-{number}") for number, client in enumerate(clients))
        )

        assert len({(term.holder, term.epoch) for term in terms}) == 1

    async def test_l1_the_answer_names_the_holder_while_the_term_runs(self, bench: LeadershipBench) -> None:
        ours, theirs = await bench.open(), await bench.open()
        term = await lead(ours)
        bench.jump(TERM - 1)

        await theirs.campaign("shop", "bob")
        current = await theirs.campaign("shop", "bob")

        assert (current.holder, current.epoch) == ("ann", term.epoch)
        assert 0 < current.lasts <= 1.5, "campaigning does not make another's term longer"

    async def test_l2_every_new_term_has_a_larger_epoch(self, bench: LeadershipBench) -> None:
        leadership = await bench.open()
        epochs = []
        for number in range(4):
            epochs.append((await lead(leadership, f"candidate-{number}")).epoch)
            bench.jump(TERM + 1)

        assert epochs == sorted(set(epochs))

    async def test_l2_an_epoch_is_not_used_again_after_a_resignation(self, bench: LeadershipBench) -> None:
        leadership = await bench.open()
        first = await lead(leadership)
        await leadership.resign(first)

        second = await lead(leadership)

        assert second.epoch > first.epoch

    async def test_l3_renewing_keeps_the_epoch(self, bench: LeadershipBench) -> None:
        leadership = await bench.open()
        first = await lead(leadership)
        for _ in range(10):
            bench.jump(RENEW)
            again = await lead(leadership)

        assert again.epoch == first.epoch
        assert again.ends >= first.ends + 10 * RENEW

    async def test_l3_a_term_that_is_not_renewed_ends(self, bench: LeadershipBench) -> None:
        ours, theirs = await bench.open(), await bench.open()
        first = await lead(ours)
        bench.jump(TERM + 0.01)

        second = await lead(theirs, "bob")

        assert second.epoch > first.epoch

    async def test_l3_a_lost_answer_is_given_again(self, bench: LeadershipBench) -> None:
        leadership = await bench.open()
        lost = await lead(leadership)

        assert (await lead(leadership)).epoch == lost.epoch

    async def test_l4_who_slept_past_its_term_gets_a_new_epoch(self, bench: LeadershipBench) -> None:
        leadership = await bench.open()
        first = await lead(leadership)
        bench.jump(TERM + 1)

        assert (await lead(leadership)).epoch > first.epoch

    async def test_l4_who_slept_past_its_term_hears_who_leads_now(self, bench: LeadershipBench) -> None:
        ours, theirs = await bench.open(), await bench.open()
        await lead(ours)
        bench.jump(TERM + 1)
        now = await lead(theirs, "bob")

        current = await ours.campaign("shop", "ann")

        assert (current.holder, current.epoch) == ("bob", now.epoch)

    @pytest.mark.parametrize("successor", ["none", "the same", "another"])
    @pytest.mark.parametrize("operation", ["start", "skip", "retire"])
    async def test_l5_an_operation_of_an_ended_term_is_refused_and_changes_nothing(
        self, bench: LeadershipBench, operation: str, successor: str
    ) -> None:
        ours, theirs, jobs = await bench.open(), await bench.open(), await bench.jobs()
        old = await lead(ours)
        first = await ours.start(old, tick(bench.now()), RULES)
        newer = await jobs.start("shop", RULES)
        assert first is not None
        await bench.end(first)
        before = await ours.tick("shop")
        bench.jump(TERM + 1)
        if successor != "none":
            await lead(theirs, "ann" if successor == "the same" else "bob")

        with pytest.raises(TermOver):
            await _operate(ours, operation, old, bench.now())

        assert await theirs.tick("shop") == before
        assert [job.id for job in await jobs.all()] == [first.id, newer.id]

    async def test_l5_an_operation_of_the_running_term_is_done(self, bench: LeadershipBench) -> None:
        leadership, jobs = await bench.open(), await bench.jobs()
        term = await lead(leadership)
        bench.jump(RENEW)
        await lead(leadership)
        at = bench.now()

        job = await leadership.start(term, tick(at), RULES, "v1")

        assert job is not None
        assert (job.spider, job.version) == ("shop", "v1")
        assert abs(job.started_at - at) < 5
        assert await jobs.latest("shop") == job
        assert await leadership.tick("shop") == Tick(at=at, schedule=NIGHTLY, job=job.id, ran=at)

    async def test_l6_a_tick_that_is_asked_for_again_answers_with_its_job(self, bench: LeadershipBench) -> None:
        ours, theirs, jobs = await bench.open(), await bench.open(), await bench.jobs()
        at = bench.now()
        first = await ours.start(await lead(ours), tick(at), RULES)
        repeated = await ours.start(await lead(ours), tick(at), RULES)
        bench.jump(TERM + 1)

        by_another = await theirs.start(await lead(theirs, "bob"), tick(at), RULES)

        assert first is not None
        assert first == repeated == by_another
        assert [job.id for job in await jobs.all()] == [first.id]

    async def test_l6_many_who_ask_at_once_start_one_job(self, bench: LeadershipBench) -> None:
        clients = [await bench.open() for _ in range(5)]
        jobs = await bench.jobs()
        term = await lead(clients[0])
        at = bench.now()

        started = await asyncio.gather(*(client.start(term, tick(at), RULES) for client in clients))

        assert len({job.id for job in started if job}) == 1
        assert len(await jobs.all()) == 1

    async def test_l6_the_next_tick_starts_the_next_job(self, bench: LeadershipBench) -> None:
        leadership, jobs = await bench.open(), await bench.jobs()
        term = await lead(leadership)
        first = await leadership.start(term, tick(bench.now()), RULES)
        bench.jump(1)

        second = await leadership.start(term, tick(bench.now()), RULES)

        assert first and second
        assert [job.id for job in await jobs.all()] == [first.id, second.id]

    async def test_l7_a_tick_that_was_passed_over_starts_nothing(self, bench: LeadershipBench) -> None:
        leadership, jobs = await bench.open(), await bench.jobs()
        term = await lead(leadership)
        at = bench.now()
        await leadership.skip(term, tick(at))

        assert await leadership.start(term, tick(at), RULES) is None
        assert await leadership.start(term, tick(at - 60), RULES) is None
        assert [] == await jobs.all()

    async def test_l7_the_job_that_ran_last_is_known_when_later_ticks_are_passed_over(
        self, bench: LeadershipBench
    ) -> None:
        leadership = await bench.open()
        term = await lead(leadership)
        at = bench.now()
        job = await leadership.start(term, tick(at), RULES)
        assert job is not None

        await leadership.skip(term, tick(at + 60))

        assert await leadership.tick("shop") == Tick(at=at + 60, schedule=NIGHTLY, job=job.id, ran=at)
        assert await leadership.start(term, tick(at + 60), RULES) is None
        assert await leadership.start(term, tick(at), RULES) == job

    async def test_l7_passing_over_an_older_tick_changes_nothing(self, bench: LeadershipBench) -> None:
        leadership = await bench.open()
        term = await lead(leadership)
        at = bench.now()
        job = await leadership.start(term, tick(at), RULES)
        assert job is not None

        await leadership.skip(term, tick(at))
        await leadership.skip(term, tick(at - 60))

        assert await leadership.tick("shop") == Tick(at=at, schedule=NIGHTLY, job=job.id, ran=at)

    async def test_l7_another_schedule_begins_anew(self, bench: LeadershipBench) -> None:
        leadership = await bench.open()
        term = await lead(leadership)
        at = bench.now()
        await leadership.skip(term, tick(at))

        await leadership.skip(term, tick(at, "0 4 * * * UTC"))

        assert await leadership.tick("shop") == tick(at, "0 4 * * * UTC")

    async def test_l8_resigning_frees_the_office_at_once(self, bench: LeadershipBench) -> None:
        ours, theirs = await bench.open(), await bench.open()
        term = await lead(ours)

        await ours.resign(term)

        assert (await lead(theirs, "bob")).epoch > term.epoch
        with pytest.raises(TermOver):
            await ours.skip(term, tick(bench.now()))

    async def test_l8_resigning_a_term_that_is_over_leaves_the_successor_alone(self, bench: LeadershipBench) -> None:
        ours, theirs = await bench.open(), await bench.open()
        old = await lead(ours)
        bench.jump(TERM + 1)
        new = await lead(theirs, "bob")

        await ours.resign(old)

        assert (await ours.campaign("shop", "ann")).epoch == new.epoch
        await theirs.skip(new, tick(bench.now()))

    async def test_l9_offices_do_not_disturb_each_other(self, bench: LeadershipBench) -> None:
        ours, theirs = await bench.open(), await bench.open()
        shop, books = await lead(ours, "ann", "shop"), await lead(theirs, "bob", "books")
        at = bench.now()

        first = await ours.start(shop, tick(at), RULES)
        second = await theirs.start(books, tick(at), RULES)

        assert first and second and first.id != second.id
        assert ("shop", "books") == (first.spider, second.spider)

    async def test_l10_old_ended_jobs_are_retired_and_others_stay(self, bench: LeadershipBench) -> None:
        leadership, jobs = await bench.open(), await bench.jobs()
        old, stranger, unfinished = [await jobs.start(name, RULES) for name in ("shop", "books", "shop")]
        await bench.end(old)
        await bench.end(stranger)
        bench.jump(100)
        young, newest = [await jobs.start("shop", RULES) for _ in range(2)]
        await bench.end(young)

        retired = await leadership.retire(await lead(leadership), bench.now() - 50)

        assert [old.id] == retired
        assert {stranger.id, unfinished.id, young.id, newest.id} == {job.id for job in await jobs.all()}

    async def test_l10_the_newest_job_is_never_retired(self, bench: LeadershipBench) -> None:
        leadership, jobs = await bench.open(), await bench.jobs()
        job = await jobs.start("shop", RULES)
        await bench.end(job)
        bench.jump(100)

        assert [] == await leadership.retire(await lead(leadership), bench.now())
        assert await jobs.latest("shop") is not None

    async def test_l10_a_new_job_has_nothing_of_one_that_was_retired(self, bench: LeadershipBench) -> None:
        leadership, jobs = await bench.open(), await bench.jobs()
        old = await jobs.start("shop", RULES)
        await jobs.start("shop", RULES)
        await bench.end(old)
        bench.jump(100)
        await leadership.retire(await lead(leadership), bench.now())

        new = await jobs.start("shop", RULES)

        assert new.id != old.id


async def _operate(leadership: Leadership, operation: str, term: Term, at: Moment) -> Any:
    if operation == "start":
        return await leadership.start(term, tick(at), RULES)
    if operation == "skip":
        return await leadership.skip(term, tick(at))
    return await leadership.retire(term, at)

"""F16: a lane that fails gets less, rests longer, is probed gently, and is given up in the end."""

from collections.abc import Sequence

from trotline.model.job import State
from trotline.model.lease import LaneFeedback, Lease, Settled
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.time import Seconds
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    Client,
    end,
    finish,
    lane_view,
    lease_all,
    lease_one,
    live_on,
    steady,
    task,
    tasks,
)

FAILURES_IN_A_ROW = 10
"""So many open a lane's breaker."""
ALLOWANCE = 10
"""Retries that a lane may start in addition to its share."""
AN_HOUR: Seconds = 3600.0


async def fail(client: Client, kind: Kind = Kind.BROKEN, times: int = FAILURES_IN_A_ROW) -> None:
    """Visit the next tasks; every one of them fails."""
    for _ in range(times):
        lease = await lease_one(client, "w")
        await end(client, "w", lease, Bury("broken: 503"), LaneFeedback(kind))


async def quiet(bench: Bench, client: Client, step: Seconds = 1.0) -> Seconds:
    """How long the shop gives no lease; ends with the probe in the hands of worker "w"."""
    waited = 0.0
    while not await client.lease("w", 1):
        assert waited < AN_HOUR, "a resting lane is probed now and then"
        await live_on(bench, client, step, "w")
        waited += step
    return waited


class FailPromises:
    async def test_f16_a_lane_that_only_fails_rests(self, bench: Bench) -> None:
        for kind in (Kind.BROKEN, Kind.UNREACHABLE):
            frontier = await bench.open()
            await frontier.put(tasks(50) + tasks(3, lane="well.example", priority=99))

            await fail(frontier, kind)

            assert {lease.task.lane for lease in await lease_all(frontier, "v")} == {"well.example"}
            view = await lane_view(frontier)
            assert view.rests_for > 0
            assert view.why

    async def test_f16_a_site_that_blocks_or_cannot_be_reached_is_a_lane_that_fails(self, bench: Bench) -> None:
        for kind in (Kind.BLOCKED, Kind.UNREACHABLE):
            frontier = await bench.open()
            await frontier.put(tasks(FAILURES_IN_A_ROW + 1))

            await fail(frontier, kind)

            assert await frontier.lease("w", 1) == [], f"{kind} for every task"

    async def test_f16_an_answer_that_the_site_gave_is_no_failure(self, bench: Bench) -> None:
        for kind in (Kind.GONE, Kind.REFUSED):
            frontier = await bench.open()
            await frontier.put(tasks(2 * FAILURES_IN_A_ROW))

            await fail(frontier, kind, times=2 * FAILURES_IN_A_ROW - 1)

            assert len(await frontier.lease("w", 1)) == 1, f"{kind} says nothing about the lane"

    async def test_f16_a_success_in_between_keeps_the_lane_open(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(100))

        for _ in range(4):
            await fail(frontier, times=FAILURES_IN_A_ROW - 1)
            await finish(frontier, "w", [await lease_one(frontier, "w")], Kind.OK)

        assert len(await frontier.lease("w", 5)) == 5

    async def test_f16_after_the_rest_one_probe_at_a_time(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(50))
        await fail(frontier)

        assert await quiet(bench, frontier) > 0

        assert await frontier.lease("v", 10) == await other.lease("u", 10) == [], "one probe is on its way"

    async def test_f16_a_page_that_hangs_does_not_hold_up_the_probe(self, bench: Bench) -> None:
        """Visits from before the rest may take minutes: one probe goes out beside them, and only one."""
        frontier = await bench.open()
        await frontier.put(tasks(50))
        hanging = [await lease_one(frontier, "w") for _ in range(2)]
        throttled = await lease_one(frontier, "w")
        await end(frontier, "w", throttled, Snooze(0, "429"), LaneFeedback(Kind.THROTTLED, rest=2.0))
        assert await lease_all(frontier, "w") == [], "it rests"
        bench.jump(3.0)

        [probe] = await lease_all(frontier, "w")
        assert await frontier.lease("w", 5) == [], "no second one"
        await end(frontier, "w", probe, Snooze(0, "429"), LaneFeedback(Kind.THROTTLED, rest=2.0))
        bench.jump(30.0)
        [probe] = await lease_all(frontier, "w")
        await finish(frontier, "w", [probe], Kind.OK)
        bench.jump(1.0)

        assert len(await lease_all(frontier, "w")) > 1, "it is open again"
        assert await end(frontier, "w", hanging[0], Done()) == Settled.OK

    async def test_f16_a_probe_goes_out_alone_after_the_older_visits_have_ended(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(50))
        hanging = [await lease_one(frontier, "w") for _ in range(3)]
        await end(frontier, "w", hanging[0], Snooze(0, "429"), LaneFeedback(Kind.THROTTLED, rest=2.0))
        for lease in hanging[1:]:
            await end(frontier, "w", lease, Bury("unreachable"), LaneFeedback(Kind.UNREACHABLE))
        bench.jump(3.0)

        assert len(await lease_all(frontier, "w")) == 1
        assert await frontier.lease("w", 5) == []

    async def test_f16_pauses_grow_while_probes_fail(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(50))
        await fail(frontier)
        pauses: list[Seconds] = []
        for _ in range(4):
            while not (leases := await frontier.lease("w", 10)):
                assert sum(pauses) < 4 * AN_HOUR
                rest = max(1.0, (await lane_view(frontier)).rests_for)
                await live_on(bench, frontier, rest, "w")
                pauses.append(rest)
            [probe] = leases
            await end(frontier, "w", probe, Bury("broken: 503"), LaneFeedback(Kind.BROKEN))

        assert pauses[-1] > pauses[0], f"growing pauses: {pauses}"

    async def test_f16_a_good_probe_opens_the_lane_again(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(50))
        await fail(frontier)
        await live_on(bench, frontier, (await lane_view(frontier)).rests_for, "w")
        [probe] = await frontier.lease("w", 10)

        await finish(frontier, "w", [probe], Kind.OK)

        assert len(await lease_all(frontier, "w", limit=10)) == 10
        assert (await lane_view(frontier)).rests_for == 0

    async def test_f16_an_operator_ends_a_rest_and_one_probe_goes_out(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(50))
        await fail(frontier)
        before = (await lane_view(frontier)).rests_for

        await operator.steer(State.PAUSED, SHOP)
        await operator.steer(State.RUNNING, SHOP)
        assert (await lane_view(frontier)).rests_for > 0, "the end of a pause does not end what the site asked for"
        await operator.steer(State.RUNNING, SHOP)

        assert (await lane_view(operator)).rests_for == 0
        [probe] = await frontier.lease("w", 10)
        assert await operator.lease("v", 10) == [], "one probe at a time"
        await end(frontier, "w", probe, Bury("broken: 503"), LaneFeedback(Kind.BROKEN))
        assert (await lane_view(frontier)).rests_for > before, "it failed: the next pause is longer"

    async def test_f16_a_probe_is_a_task_that_has_not_failed_if_one_waits(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(FAILURES_IN_A_ROW, priority=1))
        for lease in await lease_all(frontier, "w"):
            await end(frontier, "w", lease, Retry(1, "500"), LaneFeedback(Kind.BROKEN))
        # Behind the retries, by its priority.
        await frontier.put([task("https://shop.example/healthy", priority=100_000)])
        bench.jump(1)

        while not (probes := await frontier.lease("w", 5)):
            await live_on(bench, frontier, 1, "w")

        assert [probe.task.url for probe in probes] == ["https://shop.example/healthy"]
        await end(frontier, "w", probes[0], Bury("broken: 503"), LaneFeedback(Kind.BROKEN))
        assert await quiet(bench, frontier) > 0, "without another one a task that failed is the probe"

    async def test_f16_a_probe_that_vanishes_is_followed_by_another(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(50))
        await fail(frontier)
        await live_on(bench, frontier, (await lane_view(frontier)).rests_for, "w")
        assert len(await frontier.lease("dead", 10)) == 1

        await live_on(bench, frontier, 20, "w")

        assert await quiet(bench, frontier) < AN_HOUR

    async def test_f16_retries_of_a_failing_lane_are_a_capped_share_of_its_traffic(self, bench: Bench) -> None:
        share = 0.2
        frontier = await bench.open(steady(retry_share=share))
        await frontier.put(tasks(60, priority=1))
        # Nine of ten fail: it is not closed, and most of its visits are in vain.
        await _suffer(frontier, await lease_all(frontier, "w", 60))
        # These would go after the retries, if retries were not capped.
        await frontier.put([task for task in tasks(400, priority=100_000) if task.url not in _first(60)])
        fresh, retries = 60, 0
        while fresh < 300:
            leases = await frontier.lease("w", 10)
            retries += sum(lease.task.attempt > 0 for lease in leases)
            fresh += sum(lease.task.attempt == 0 for lease in leases)
            assert retries <= share * fresh + ALLOWANCE, f"{retries} retries to {fresh} first attempts"
            assert leases, "fresh tasks need no credit"
            await _suffer(frontier, leases)

        assert retries >= share * (fresh - 60) - 1, "the share is used"

    async def test_f16_the_cap_delays_retries_but_never_starves_them(self, bench: Bench) -> None:
        frontier = await bench.open(steady(retry_share=0.2))
        await frontier.put(tasks(60))
        await frontier.seal()
        assert (await lane_view(frontier)).retry_credit is None, "no visit failed"
        await _suffer(frontier, await lease_all(frontier, "w"))
        capped, pace = await lane_view(frontier), await frontier.lane_pace(SHOP)
        assert capped.retry_credit is not None
        assert pace is not None
        assert capped.retry_credit <= ALLOWANCE
        assert pace.retry_credit is not None
        for _ in range(720):
            await finish(frontier, "w", await frontier.lease("w", 100))
            if await frontier.finished():
                break
            await live_on(bench, frontier, 5, "w")

        assert await frontier.finished(), "no fresh task is left in this lane; its retries must get through"

    async def test_f16_a_lane_down_for_too_long_is_given_up_and_can_be_revived(self, bench: Bench) -> None:
        frontier = await bench.open(steady(give_up=120.0))
        await frontier.put(tasks(30) + tasks(2, lane="well.example", not_before=bench.now() + 2 * AN_HOUR))
        for lease in (await lease_all(frontier, "w"))[:FAILURES_IN_A_ROW]:
            await end(frontier, "w", lease, Retry(600, "connect"), LaneFeedback(Kind.UNREACHABLE))
        await frontier.leave("w")
        for _ in range(200):
            for lease in await frontier.lease("w", 10):
                await end(frontier, "w", lease, Retry(600, "connect"), LaneFeedback(Kind.UNREACHABLE))
            if (await frontier.progress()).dead:
                break
            await live_on(bench, frontier, 5, "w")

        progress = await frontier.progress()
        assert (progress.waiting, progress.dead) == (2, 30), "all of the lane, and of no other"
        graves = await frontier.graves("unreachable: lane given up")
        assert {grave.lane for grave in graves} == {SHOP}
        assert await frontier.revive(why="unreachable: lane given up") == 30
        assert await quiet(bench, frontier) < AN_HOUR, "who is revived is tried again"

    async def test_f16_a_lane_is_not_given_up_while_it_is_patience_long(self, bench: Bench) -> None:
        frontier = await bench.open(steady(give_up=AN_HOUR))
        await frontier.put(tasks(30))
        await fail(frontier, Kind.UNREACHABLE)
        dead = (await frontier.progress()).dead

        for _ in range(20):
            await live_on(bench, frontier, 60, "w")
            for lease in await frontier.lease("w", 10):
                await end(frontier, "w", lease, Retry(600, "connect"), LaneFeedback(Kind.UNREACHABLE))

        assert (await frontier.progress()).dead == dead


async def _suffer(client: Client, leases: Sequence[Lease]) -> None:
    """Nine of ten visits fail and are to be tried again."""
    for number, lease in enumerate(leases):
        if number % 10:
            await end(client, "w", lease, Retry(0, "503"), LaneFeedback(Kind.BROKEN))
        else:
            await finish(client, "w", [lease], Kind.OK)


def _first(count: int) -> set[str]:
    return {task.url for task in tasks(count)}

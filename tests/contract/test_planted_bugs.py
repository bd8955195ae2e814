"""The suite can fail: frontiers with a planted bug, each caught by the promise it breaks."""

import contextlib
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.contract.broken_benches import (
    BrokenBench,
    BrokenMemoryBench,
    BrokenPoolsBench,
    BrokenPostgresBench,
    ClientClockBench,
)
from tests.contract.broken_frontiers import (
    AnnouncesTheCancelled,
    AnnouncesToEverybody,
    AnswersBeforeWriting,
    Broken,
    BuriesWithoutReason,
    CancelsForEver,
    ChecksThenAdds,
    CountsNoAttempts,
    CountsSnoozes,
    CountsStaleSettles,
    DoesNotFence,
    DoesNotPause,
    DoesNotWaitForRobots,
    DrainsByPausing,
    ForgetsWhatIsDone,
    GoesOnAfterAFailure,
    HidesLeasedTasks,
    IgnoresChains,
    IgnoresDueTimes,
    KeepsItsPace,
    KeepsLanesByJob,
    LearnsNothing,
    LeasesTwice,
    LooksAtTheHeadOnly,
    LosesThePlace,
    NeverWaits,
    OneQueueForAll,
    RemembersWhatItRefused,
    StartsAtOnce,
    TakesEveryRoute,
)
from tests.contract.broken_pools import (
    AnyAccount,
    BansForFaults,
    BrokenPools,
    ForgivesBans,
    ForgivesFaults,
    LeavesForTheSilent,
    LendsTwice,
    NamesNoMember,
    PoolsOfAnyVersion,
    PoolsThatOnlyGrow,
    PoolsWithoutRules,
    SavesWithoutALease,
    ServesEveryPool,
)
from tests.contract.conftest import SqliteMemoryBench

from trotline.model.lease import Lease, Settled, Settlement
from trotline.model.outcome import Done
from trotline.model.record import Record
from trotline.model.task import Task
from trotline.model.visit_row import VisitRow
from trotline.testing.frontier_contract import FrontierContract, tasks
from trotline.testing.frontier_machine import frontier_machine
from trotline.worker.commit import Committer
from trotline.worker.field_coverage_counts import CoverageCount
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.work_meter import WorkMeter
from trotline.worker.worker_settings import WorkerPolicy

CAUGHT = [
    (ChecksThenAdds, "test_f1_of_many_puts_at_once_exactly_one_admits"),
    (AnswersBeforeWriting, "test_f2_a_new_task_can_be_leased_by_another_client_at_once"),
    (AnswersBeforeWriting, "test_f2_an_admitted_task_outlives_the_process_that_put_it"),
    (LeasesTwice, "test_f3_no_task_is_leased_twice_however_many_ask_at_once"),
    (IgnoresDueTimes, "test_f4_nothing_is_leased_before_its_due_time"),
    (CountsNoAttempts, "test_f5_a_dead_workers_tasks_can_be_leased_again_with_one_more_attempt"),
    (DoesNotFence, "test_f6_a_stale_token_is_refused_and_changes_nothing"),
    (DoesNotFence, "test_f5_a_dead_workers_tasks_can_be_leased_again_with_one_more_attempt"),
    (ForgetsWhatIsDone, "test_f7_a_done_task_never_comes_back"),
    (CountsSnoozes, "test_f8_a_snooze_costs_no_attempt"),
    (BuriesWithoutReason, "test_f9_a_buried_task_keeps_its_reason"),
    (HidesLeasedTasks, "test_f10_the_books_balance_after_every_step"),
    (HidesLeasedTasks, "test_f10_a_look_in_the_middle_of_the_work_sees_every_task"),
    (NeverWaits, "test_f11_leasing_waits_and_returns_early_when_work_arrives"),
    (DoesNotPause, "test_f12_a_paused_lane_gives_no_leases_and_takes_puts"),
    (DoesNotPause, "test_f12_a_paused_job_gives_no_leases_takes_puts_and_lets_visits_end"),
    (DrainsByPausing, "test_f12_a_draining_job_visits_what_waits_and_takes_nothing_new"),
    (RemembersWhatItRefused, "test_f12_what_was_refused_is_admitted_after_a_resume"),
    (AnnouncesTheCancelled, "test_f14_a_cancelled_job_is_not_announced_as_finished"),
    (
        CancelsForEver,
        "test_f12_a_cancelled_job_gives_no_leases_is_finished_for_its_workers_and_goes_on_after_a_resume",
    ),
    (KeepsItsPace, "test_f13_set_pace_makes_a_lane_faster_from_now_on"),
    (KeepsItsPace, "test_f13_set_pace_makes_a_lane_slower_and_what_is_reserved_stays_reserved"),
    (CountsStaleSettles, "test_f10_a_workers_figures_are_counted_with_its_settles"),
    (StartsAtOnce, "test_f13_starts_keep_the_rate_whatever_the_workers_do"),
    (AnnouncesToEverybody, "test_f14_of_many_that_ask_at_once_one_announces"),
    (OneQueueForAll, "test_f15_a_huge_lane_does_not_delay_another_lanes_first_task"),
    (LearnsNothing, "test_f16_a_lane_that_only_fails_rests"),
    (KeepsLanesByJob, "test_f13_jobs_share_one_pace"),
    (TakesEveryRoute, "test_f21_a_worker_gets_tasks_of_its_routes_only"),
    (LooksAtTheHeadOnly, "test_f21_what_waits_before_them_does_not_delay_them"),
    (KeepsLanesByJob, "test_f13_jobs_share_the_places_of_a_lane"),
    (DoesNotWaitForRobots, "test_f18_a_crawl_delay_holds_from_the_first_start"),
    (LearnsNothing, "test_f18_a_page_forbidden_by_robots_txt_still_reports_it"),
    (CountsSnoozes, "test_f19_throttled_pages_lose_no_attempt_and_need_no_credit"),
    (LearnsNothing, "test_f19_throttled_pages_lose_no_attempt_and_need_no_credit"),
    (NamesNoMember, "test_r1_a_lease_names_a_member_of_its_pool_and_without_a_pool_none"),
    (LendsTwice, "test_r2_one_visit_of_a_lane_at_a_time_goes_through_a_member"),
    (LendsTwice, "test_r2_no_member_is_lost_or_doubled_whatever_workers_do"),
    (DoesNotFence, "test_r2_a_stale_settle_returns_no_member"),
    (ForgivesBans, "test_r4_a_banned_member_rests_for_its_lane_only"),
    (ForgivesBans, "test_r5_without_a_free_member_nothing_is_leased_and_no_attempt_counted"),
    (ForgivesFaults, "test_r6_a_member_that_fails_three_times_rests_for_all_lanes"),
    (BansForFaults, "test_r6_a_member_that_fails_three_times_rests_for_all_lanes"),
    (ForgivesBans, "test_r10_members_blocked_in_a_row_are_a_block_by_the_site"),
    (ServesEveryPool, "test_r11_a_worker_gets_leases_only_of_the_pools_that_it_asks_for"),
    (LendsTwice, "test_a1_one_lease_at_a_time_over_all_lanes_jobs_and_workers"),
    (AnyAccount, "test_a2_a_lane_with_an_account_is_visited_by_this_account_only"),
    (AnyAccount, "test_a1_no_account_is_doubled_or_locked_whatever_workers_do"),
    (LeavesForTheSilent, "test_a3_an_account_of_a_silent_worker_rests_for_all_lanes"),
    (DoesNotFence, "test_a1_no_account_is_doubled_or_locked_whatever_workers_do"),
    (SavesWithoutALease, "test_a5_without_a_live_lease_nothing_is_stored"),
    (SavesWithoutALease, "test_a5_an_account_that_is_removed_takes_its_session_along"),
    (SavesWithoutALease, "test_a1_no_account_is_doubled_or_locked_whatever_workers_do"),
    (IgnoresChains, "test_c1_one_step_of_a_chain_is_leased_at_a_time_in_the_order_of_admission"),
    (IgnoresChains, "test_c7_a_chain_may_have_steps_in_several_lanes"),
    (LosesThePlace, "test_c3_nothing_overtakes_a_retry_or_a_snooze"),
    (GoesOnAfterAFailure, "test_c4_a_buried_step_buries_those_behind_it_with_its_url_and_reason"),
    (GoesOnAfterAFailure, "test_c4_a_failed_chain_does_not_keep_its_job_from_finishing"),
]

CAUGHT_POOLS = [
    (PoolsWithoutRules, "test_r3_starts_through_a_member_keep_the_interval_of_the_pool"),
    (PoolsWithoutRules, "test_r7_hold_keeps_a_member_for_some_visits_in_a_row"),
    (PoolsWithoutRules, "test_r9_starts_through_a_member_keep_member_interval_over_all_lanes"),
    (PoolsWithoutRules, "test_r9_leases_through_a_member_stay_within_member_concurrency"),
    (PoolsWithoutRules, "test_a1_one_lease_at_a_time_over_all_lanes_jobs_and_workers"),
    (PoolsWithoutRules, "test_a1_no_account_is_doubled_or_locked_whatever_workers_do"),
    (PoolsWithoutRules, "test_a4_an_account_rests_when_its_visits_of_a_window_are_used"),
    (PoolsThatOnlyGrow, "test_r8_a_removed_member_gets_no_lease_and_an_added_one_gets_turns"),
    (PoolsOfAnyVersion, "test_r8_an_older_version_is_ignored_and_the_same_one_changes_nothing"),
]


@pytest.mark.parametrize(("bug", "promise"), CAUGHT_POOLS, ids=lambda part: getattr(part, "__name__", part))
async def test_the_suite_catches_pools(bug: type[BrokenPools], promise: str) -> None:
    bench = BrokenPoolsBench(bug)
    try:
        with pytest.raises(AssertionError):
            await getattr(FrontierContract(), promise)(bench)
    finally:
        await bench.close()


@pytest.mark.parametrize(("bug", "promise"), CAUGHT, ids=lambda part: getattr(part, "__name__", part))
async def test_the_suite_catches(bug: type[Broken], promise: str) -> None:
    bench = BrokenBench(bug)
    try:
        with pytest.raises(AssertionError):
            await getattr(FrontierContract(), promise)(bench)
    finally:
        await bench.close()


OF_SERVERS = [
    (LeasesTwice, "test_f3_no_task_is_leased_twice_however_many_ask_at_once"),
    (CountsNoAttempts, "test_f5_a_dead_workers_tasks_can_be_leased_again_with_one_more_attempt"),
    (DoesNotFence, "test_f6_a_stale_token_is_refused_and_changes_nothing"),
    (HidesLeasedTasks, "test_f10_a_look_in_the_middle_of_the_work_sees_every_task"),
    (NeverWaits, "test_f11_leasing_waits_and_returns_early_when_work_arrives"),
    (KeepsLanesByJob, "test_f13_jobs_share_one_pace"),
    (AnnouncesToEverybody, "test_f14_of_many_that_ask_at_once_one_announces"),
    (OneQueueForAll, "test_f15_a_huge_lane_does_not_delay_another_lanes_first_task"),
    (TakesEveryRoute, "test_f21_a_worker_gets_tasks_of_its_routes_only"),
    (IgnoresChains, "test_c1_one_step_of_a_chain_is_leased_at_a_time_in_the_order_of_admission"),
    (LendsTwice, "test_r2_one_visit_of_a_lane_at_a_time_goes_through_a_member"),
]
"""On a server with many connections, races and locks of its own, these are caught, too."""


@pytest.mark.parametrize(("bug", "promise"), OF_SERVERS, ids=lambda part: getattr(part, "__name__", part))
async def test_the_suite_catches_on_postgresql(bug: type[Broken], promise: str) -> None:
    bench = BrokenPostgresBench(bug)
    try:
        with pytest.raises(AssertionError):
            await getattr(FrontierContract(), promise)(bench)
    finally:
        await bench.close()


@pytest.mark.slow("proves that the suite can fail, not the code")
async def test_a_healthy_postgresql_in_the_same_hands_is_not_accused() -> None:
    for _, promise in OF_SERVERS:
        bench = BrokenPostgresBench(Broken)
        try:
            await getattr(FrontierContract(), promise)(bench)
        finally:
            await bench.close()


async def test_only_the_race_betrays_a_check_then_add() -> None:
    bench = BrokenBench(ChecksThenAdds)
    try:
        await FrontierContract().test_f1_putting_twice_admits_once(bench)
    finally:
        await bench.close()


@pytest.mark.parametrize(
    "promise",
    ["test_f13_a_clients_wild_wall_clock_changes_nothing", "test_f13_a_wild_wall_clock_kills_no_living_worker"],
)
async def test_the_suite_catches_a_frontier_on_the_clients_wall_clock(promise: str) -> None:
    bench = ClientClockBench()
    try:
        with pytest.raises(AssertionError):
            await getattr(FrontierContract(), promise)(bench)
    finally:
        await bench.close()


@pytest.mark.slow("proves that the suite can fail, not the code")
async def test_a_healthy_frontier_in_the_same_hands_is_not_accused() -> None:
    for promise in sorted({promise for _, promise in (*CAUGHT, *CAUGHT_POOLS)}):
        bench = BrokenBench(Broken)
        try:
            await getattr(FrontierContract(), promise)(bench)
        finally:
            await bench.close()


def run_machine(bug: type[Broken], examples: int) -> None:
    quickly = settings(
        max_examples=examples,
        stateful_step_count=30,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(frontier_machine(lambda: BrokenMemoryBench(bug)), settings=quickly)


@pytest.mark.parametrize(
    "bug",
    [
        LeasesTwice,
        IgnoresDueTimes,
        CountsNoAttempts,
        DoesNotFence,
        CountsSnoozes,
        HidesLeasedTasks,
        DoesNotPause,
        DrainsByPausing,
        AnnouncesToEverybody,
    ],
)
@pytest.mark.slow("proves that the suite can fail, not the code")
def test_the_machine_catches(bug: type[Broken]) -> None:
    with pytest.raises(AssertionError):
        run_machine(bug, examples=200)


@pytest.mark.slow("proves that the suite can fail, not the code")
def test_the_machine_does_not_accuse_a_healthy_frontier_in_the_same_hands() -> None:
    run_machine(Broken, examples=20)


class Killed(BaseException):
    """The worker's process is gone: nothing of it happens any more, not even its error handling."""


class Life:
    """A process that may cause so many effects, and then is killed."""

    def __init__(self, effects: int) -> None:
        self.left = effects

    def effect(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1


class Rows:
    """A sink of one process: rows by key."""

    def __init__(self, rows: dict[str, Record], life: Life) -> None:
        self._rows = rows
        self._life = life

    keeps_visits = False

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        self._life.effect()
        self._rows.update((record.key, record) for record in batch)

    async def close(self) -> None:
        pass


class Mortal(Broken):
    """A healthy frontier, used by a process that may be killed before any settle."""

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        self.common["life"].effect()
        return await self.healthy.settle(worker, settlements)


class OpenGate:
    """A gate with nothing to remember: these pages lead nowhere."""

    def confirm(self, tasks: Sequence[Task]) -> None:
        assert not tasks


class AcksBeforeStoring(Committer):
    """Settle first, store afterwards."""

    async def _commit(self, batch: list[FinishedVisit]) -> None:
        await self._settle(batch)
        await self._store(batch)


async def crawl_with_a_kill(committer: type[Committer], effects: int) -> None:
    """Visit three pages with a process that is killed after so many effects; another finishes. Nothing may be lost."""
    bench = SqliteMemoryBench()
    healthy = await bench.open()
    try:
        rows: dict[str, Record] = {}
        await healthy.put(tasks(3))
        await healthy.seal()
        for worker, life in (("first", Life(effects)), ("second", Life(1_000))):
            leases = await healthy.lease(worker, 10)
            tools: Any = SimpleNamespace(
                job="",
                validators=None,
                frontier=Mortal(healthy, {"life": life}),
                sink=Rows(rows, life),
                gate=OpenGate(),
                chance=random.Random(1),
                meter=WorkMeter(),
                coverage=CoverageCount(),
                tracer=None,
                archive=None,
                joint=None,
                others=None,
            )
            commits = committer(worker, tools, WorkerPolicy(batch=1, commit_every=0.0), set())
            for lease in leases:
                commits.add(FinishedVisit(lease=lease, outcome=Done(), records=[_record(lease)]))
            commits.close()
            with contextlib.suppress(Killed):
                await commits.run()
            bench.jump(20)
        assert await healthy.finished()
        assert sorted(rows) == sorted(each.url for each in tasks(3)), "a page is done, and its record is nowhere"
    finally:
        await bench.close()


def _record(lease: Lease) -> Record:
    return Record(kind="page", key=lease.task.url, data={}, url=lease.task.url, site="shop", seen_at=lease.leased_at)


@pytest.mark.parametrize("effects", range(8))
async def test_a_kill_between_any_two_effects_of_the_commit_loses_nothing(effects: int) -> None:
    await crawl_with_a_kill(Committer, effects)


async def test_a_kill_between_the_effects_catches_an_ack_before_the_store() -> None:
    with pytest.raises(AssertionError, match="its record is nowhere"):
        await crawl_with_a_kill(AcksBeforeStoring, effects=1)

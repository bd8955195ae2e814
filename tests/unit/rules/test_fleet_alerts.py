"""Findings about what a job runs on: pools, database, workers; and about its records."""

from typing import Any

import pytest

from trotline.model.alert import Severity
from trotline.model.job import Job, Progress
from trotline.model.work_stats import BOUNDS, Timing
from trotline.rules import commit_times
from trotline.rules.alert_rules import findings
from trotline.rules.alerts import AlertRules, DownShare, Finding, JobSample, Level, LostWorker, PoolSample
from trotline.rules.archive_loss_note import ArchiveNote
from trotline.rules.broker_shelves import unreachable
from trotline.rules.field_coverage import CoverageDrop
from trotline.rules.pool_troubles import PoolTrouble, Trouble
from trotline.rules.time_series import point_of

JOB = Job(id="shop-1", spider="shop", started_at=0.0)


def found(**more: Any) -> list[Finding]:
    own = {name: more.pop(name) for name in ("broker", "finished_at") if name in more}
    now = Progress(waiting=0, leased=0, done=1, dead=0, tallies={"records": 1}, now=60.0, **own)
    more.setdefault("commit_p95", 0.1)
    more.setdefault("pools", PoolSample(now=60.0))
    sample = JobSample(job=JOB, progress=now, points=[point_of(now, 1)], workers=1, **more)
    return [each for each in findings(sample, AlertRules()) if each.level is not Level.UNKNOWN]


def trouble(pool: str, host: str = "shop.example") -> PoolTrouble:
    return PoolTrouble(pool=pool, lane=f"{host} via {pool}", host=host, trouble=Trouble.RESTING, members=12)


def test_a_lane_without_a_free_proxy_is_an_object_of_its_own() -> None:
    one, other = found(pools=PoolSample(now=60.0, troubles=[trouble("isp", "a.example"), trouble("@buyers")]))
    assert (one.rule, one.object, one.lasting, one.severity) == (
        "proxies",
        "isp for a.example",
        60.0,
        Severity.CRITICAL,
    )
    assert one.text == "all 12 proxies of pool isp rest for a.example"
    assert (other.rule, other.object) == ("accounts", "@buyers for shop.example")


@pytest.mark.parametrize(("down", "level"), [(7, Level.FIRES), (6, Level.HOLDS), (5, Level.HOLDS), (4, None)])
def test_more_than_half_of_a_pool_down_fires(down: int, level: Level | None) -> None:
    pools = PoolSample(now=60.0, down={"isp": DownShare(down, 12)})
    assert [each.level for each in found(pools=pools)] == ([] if level is None else [level])


def test_accounts_stand_beside_proxies() -> None:
    troubles = [trouble("home"), trouble("@buyers")]
    down = {"@buyers": DownShare(2, 3), "home": DownShare(2, 3)}
    assert [(each.rule, each.text) for each in found(pools=PoolSample(now=60.0, troubles=troubles, down=down))] == [
        ("proxies", "all 12 proxies of pool home rest for shop.example"),
        ("proxies_down", "2 of 3 proxies of pool home are down"),
        ("accounts", "all 12 accounts of @buyers rest for shop.example"),
        ("accounts_down", "2 of 3 accounts of @buyers are down"),
    ]


def test_pools_that_were_not_looked_at_say_nothing() -> None:
    assert found(pools=None) == []


@pytest.mark.parametrize(("p95", "level"), [(2.5, Level.FIRES), (1.5, Level.HOLDS), (0.9, None)])
def test_slow_commits_fire(p95: float, level: Level | None) -> None:
    assert [each.level for each in found(commit_p95=p95)] == ([] if level is None else [level])


def test_a_sink_that_cannot_be_reached_fires() -> None:
    [sink] = found(held_back="sink is unreachable: no route (3 of 3 workers)")
    assert (sink.rule, sink.severity, sink.lasting) == ("sink", Severity.CRITICAL, 20.0)
    assert found(held_back="frontier is unreachable") == []


def test_an_archive_that_cannot_be_reached_fires() -> None:
    [archive] = found(held_back="archive is unreachable: s3://pages: connection refused (3 of 3 workers)")
    assert (archive.rule, archive.severity, archive.lasting) == ("archive", Severity.CRITICAL, 20.0)
    assert archive.text.endswith("connection refused (3 of 3 workers); nothing is lost, workers wait for it")


def test_an_archive_that_denies_access_fires_and_is_not_called_unreachable() -> None:
    [archive] = found(held_back="archive denies access: s3://pages refuses us: SignatureDoesNotMatch (3 of 3 workers)")
    assert (archive.rule, "unreachable" in archive.text) == ("archive", False)
    assert archive.text.startswith("s3://pages refuses us: SignatureDoesNotMatch (3 of 3 workers); nothing is lost")


def test_pages_that_are_gone_from_the_archive_fire_and_stay_when_the_job_has_ended() -> None:
    lost = ArchiveNote(lost=12, place="s3://pages", incomplete=True)
    [running] = found(archive=lost)
    assert (running.rule, running.next) == ("archive_lost", "trotline status shop-1")
    assert running.text.startswith("at least 12 pages of this job were written to s3://pages and are gone")
    [ended] = found(archive=lost, finished_at=60.0)
    assert ended.rule == "archive_lost"


def test_a_broker_that_cannot_be_reached_fires_also_while_workers_have_tasks_at_hand() -> None:
    [broker] = found(broker=unreachable("amqp://db: connection refused"))
    assert (broker.rule, broker.severity, broker.lasting) == ("broker", Severity.CRITICAL, 20.0)
    assert broker.text.startswith("amqp://db: connection refused; nothing is lost")


def drop(points: float) -> CoverageDrop:
    return CoverageDrop(kind="product", field="price", now=0.9 - points, before=0.9, records=500)


@pytest.mark.parametrize(("points", "level"), [(0.12, Level.FIRES), (0.07, Level.HOLDS)])
def test_a_field_that_is_filled_less_often_fires(points: float, level: Level) -> None:
    [field] = found(drops=[drop(points)])
    assert (field.rule, field.object, field.level) == ("coverage", "product.price", level)


def test_a_lost_worker_is_found_for_a_quarter_of_an_hour() -> None:
    [lost] = found(lost=[LostWorker("w-1", 20.0, 7, rescued=False)])
    assert (lost.object, lost.clear_after) == ("w-1", 300.0)
    assert lost.text == "no heartbeat since 00:00:40 UTC, and it did not leave; it holds 7 tasks"
    assert found(lost=[LostWorker("w-1", 901.0, 7, rescued=False)]) == []


def test_a_lost_worker_without_tasks_leaves_nothing_to_others() -> None:
    [idle] = found(lost=[LostWorker("w-1", 20.0, 0, rescued=True)])
    assert idle.text.endswith("it did not leave; it holds no task")
    [busy] = found(lost=[LostWorker("w-1", 20.0, 2, rescued=True)])
    assert busy.text.endswith("it held 2 tasks, which others take over")


def test_a_worker_that_beats_again_is_over_at_once() -> None:
    [back] = found(living=["w-1"])
    assert (back.rule, back.object, back.level) == ("worker", "w-1", Level.OVER)


def timing(**seconds: int) -> Timing:
    """timing(_0_5=3): three of at most half a second."""
    counts = [0] * (len(BOUNDS) + 1)
    for name, count in seconds.items():
        counts[BOUNDS.index(float(name[1:].replace("_", ".")))] += count
    return Timing(0.0, tuple(counts))


def test_the_percentile_is_of_the_commits_between_two_looks() -> None:
    before, now = timing(_10=100), timing(_10=100, _0_5=19, _5=1)
    assert commit_times.p95({"w": before}, {"w": now}) == pytest.approx(0.5)
    assert commit_times.p95({"w": before}, {"w": timing(_10=120)}) == pytest.approx(9.75)


def test_workers_are_added_up_and_new_ones_left_out() -> None:
    then = {"a": timing(), "b": timing()}
    now = {"a": timing(_0_5=3), "b": timing(_0_5=3), "c": timing(_30=50)}
    assert commit_times.p95(then, now) == pytest.approx(0.4875)


def test_few_commits_say_nothing() -> None:
    assert commit_times.p95({"w": timing()}, {"w": timing(_30=4)}) is None


def test_a_process_that_was_replaced_counts_anew() -> None:
    assert commit_times.p95({"w": timing(_0_5=90)}, {"w": timing(_5=20)}) == pytest.approx(4.85)


def test_commits_beyond_the_last_class_have_no_upper_bound() -> None:
    counts = (*(0 for _ in BOUNDS), 20)
    assert commit_times.p95({"w": Timing()}, {"w": Timing(900.0, counts)}) == BOUNDS[-1]

"""What `trotline db retention` prints: few lines, also for a year of days."""

from trotline.cli.db import plan_lines
from trotline.model.schema import DIVIDE, KEEP, PartitionPlan, Retention

DAY = 86400.0


def partition(name, does=KEEP, expires_at=None, rows=3):
    table = name.partition("_")[0]
    return PartitionPlan(table=table, name=name, rows=rows, bytes=1024, does=does, expires_at=expires_at)


def test_of_many_kept_partitions_the_oldest_and_the_newest_are_shown():
    days = [partition(f"visits_{number:03}", expires_at=number * DAY) for number in range(1, 366)]
    weeks = [partition(f"history_{number:03}") for number in range(1, 20)]
    lines = plan_lines(
        Retention(partitions=(partition("visits_000", "drop", 1.0), *days, *weeks), parquet="", place="db")
    )
    shown = [line.split()[1] for line in lines if line.startswith(("keep  ", "drop"))]
    assert {"visits_000", "visits_001", "visits_006", "visits_360", "visits_365", "history_001", "history_019"} <= {
        *shown
    }
    assert "visits_007" not in shown
    assert any("353 more, between these; all of them: --json" in line for line in lines)
    assert "the next retention retires 1 partition (1.0 KiB): drop" == lines[-1]


def test_what_happens_next_is_said_if_nothing_happens_now():
    plan = Retention(
        partitions=(
            partition("visits_a", expires_at=40 * DAY),
            partition("visits_b", expires_at=90 * DAY),
            partition("history_other", DIVIDE),
        ),
        parquet="",
        place="db",
    )
    *_, divide, last = plan_lines(plan)
    assert divide.startswith("divide: ")
    assert "the next retention retires nothing; the first to expire is visits_a, on 1970-02-10" == last


def test_rows_that_are_not_known_are_not_about_0():
    _, known, unknown, *_ = plan_lines(
        Retention(partitions=(partition("visits_a"), partition("visits_b", rows=None)), parquet="", place="db")
    )
    assert "about 3 " in known
    assert "not known" in unknown

"""The suite of leadership catches leaders that look right."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_leadership import SqliteBench

from trotline.adapters.sqlite.leadership import SqliteLeadership
from trotline.model.job import Job, LaneRules
from trotline.model.leadership import Term, Tick
from trotline.model.time import Moment
from trotline.ports.leadership import TERM
from trotline.testing.leadership_contract import LeadershipContract


class Unfenced(SqliteLeadership):
    """Believes whoever says that it leads."""

    def _fence(self, db: sqlite3.Connection, term: Term) -> None:
        return


class FencedByEpochAlone(SqliteLeadership):
    """A term lasts until another candidate wins the election."""

    def _fence(self, db: sqlite3.Connection, term: Term) -> None:
        [epoch] = db.execute("SELECT epoch FROM office WHERE name = ?", (term.election,)).fetchone()
        if epoch > term.epoch:
            super()._fence(db, term)


class Greedy(SqliteLeadership):
    """Every candidate wins."""

    def _campaign(self, db: sqlite3.Connection, election: str, candidate: str) -> Term:
        db.execute("UPDATE office SET ends = 0 WHERE name = ? AND holder != ?", (election, candidate))
        return super()._campaign(db, election, candidate)


class Undying(SqliteLeadership):
    """Who comes back late goes on as if nothing had happened."""

    def _campaign(self, db: sqlite3.Connection, election: str, candidate: str) -> Term:
        late = (self._db.now() + TERM, election, candidate)
        db.execute("UPDATE office SET ends = ? WHERE name = ? AND holder = ?", late)
        return super()._campaign(db, election, candidate)


class EndlessTerm(SqliteLeadership):
    """Campaigning makes the other one's term longer."""

    def _campaign(self, db: sqlite3.Connection, election: str, candidate: str) -> Term:
        term = super()._campaign(db, election, candidate)
        db.execute("UPDATE office SET ends = ? WHERE name = ?", (term.now + TERM, election))
        return term


class Forgetful(SqliteLeadership):
    """Starts the job, and does not remember for which tick."""

    def _start(self, db: sqlite3.Connection, term: Term, tick: Tick, rules: LaneRules, version: str) -> Job | None:
        job = super()._start(db, term, tick, rules, version)
        db.execute("UPDATE tick SET at = 0")
        return job


class ForgetsTheJob(SqliteLeadership):
    """A tick that is passed over hides which job ran last."""

    def _skip(self, db: sqlite3.Connection, term: Term, tick: Tick) -> None:
        super()._skip(db, term, tick)
        db.execute("UPDATE tick SET job = '', ran = 0 WHERE at > ran")


class ResignsForOthers(SqliteLeadership):
    async def resign(self, term: Term) -> None:
        await self._make()
        await self._db.write(lambda db: db.execute("UPDATE office SET ends = 0 WHERE name = ?", (term.election,)))


class Tidy(SqliteLeadership):
    """Clears away everything that has ended."""

    def _retire(self, db: sqlite3.Connection, term: Term, before: Moment) -> list[str]:
        ended = [name for (name,) in db.execute("SELECT name FROM job WHERE finished_at IS NOT NULL")]
        db.execute("DELETE FROM job WHERE finished_at IS NOT NULL")
        return ended


PLANTED = [
    (Unfenced, "test_l5_an_operation_of_an_ended_term_is_refused_and_changes_nothing", ("skip", "another")),
    (Unfenced, "test_l8_resigning_frees_the_office_at_once", ()),
    (FencedByEpochAlone, "test_l5_an_operation_of_an_ended_term_is_refused_and_changes_nothing", ("start", "none")),
    (Greedy, "test_l1_the_answer_names_the_holder_while_the_term_runs", ()),
    (Undying, "test_l4_who_slept_past_its_term_gets_a_new_epoch", ()),
    (EndlessTerm, "test_l1_the_answer_names_the_holder_while_the_term_runs", ()),
    (Forgetful, "test_l6_a_tick_that_is_asked_for_again_answers_with_its_job", ()),
    (ForgetsTheJob, "test_l7_the_job_that_ran_last_is_known_when_later_ticks_are_passed_over", ()),
    (ResignsForOthers, "test_l8_resigning_a_term_that_is_over_leaves_the_successor_alone", ()),
    (Tidy, "test_l10_the_newest_job_is_never_retired", ()),
    (Tidy, "test_l10_old_ended_jobs_are_retired_and_others_stay", ()),
]


class PlantedBench(SqliteBench):
    def __init__(self, folder: Path, kind: type[SqliteLeadership]) -> None:
        super().__init__(folder)
        self._kind = kind

    async def open(self) -> SqliteLeadership:
        self._opened.append(self._kind(self.path, now=self.clock))
        return self._opened[-1]


async def _tried(kind: type[SqliteLeadership], promise: str, more: tuple[Any, ...], folder: Path) -> None:
    bench = PlantedBench(folder, kind)
    try:
        await getattr(LeadershipContract(), promise)(bench, *more)
    finally:
        await bench.close()


@pytest.mark.parametrize(("kind", "promise", "more"), PLANTED, ids=lambda value: getattr(value, "__name__", None))
async def test_a_planted_bug_is_caught(
    kind: type[SqliteLeadership], promise: str, more: tuple[Any, ...], tmp_path: Path
) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await _tried(kind, promise, more, tmp_path)


@pytest.mark.parametrize(("promise", "more"), sorted({(promise, more) for _, promise, more in PLANTED}))
async def test_without_a_bug_the_same_promise_holds(promise: str, more: tuple[Any, ...], tmp_path: Path) -> None:
    await _tried(SqliteLeadership, promise, more, tmp_path)

"""Admission of tasks: each once, and none while draining."""

from collections.abc import Sequence

from trotline.adapters.postgres.frontier import chains, shelve_tasks
from trotline.adapters.postgres.frontier.database import CLOCK
from trotline.adapters.postgres.frontier.errors import gone
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.schema import DRAINING, ID_BITS, MOST_AT_ONCE
from trotline.adapters.postgres.frontier.task_rows import TaskRow
from trotline.model import task_json
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.model.time import Moment

_REFUSED = "refused: draining"
"""The tally of tasks refused by a draining job or lane."""
_LARGEST = (1 << 31) - 1
_MARK = f"""
WITH s AS (
    INSERT INTO seen_{{job}} (fp) SELECT * FROM unnest($1::bigint[]) ON CONFLICT (fp) DO NOTHING RETURNING fp
)
SELECT coalesce($3::float8, {CLOCK}), j.paused, j.finished_at, nextval('task_id'), ARRAY(SELECT fp FROM s)
FROM job j WHERE j.id = $2
"""


class Fresh:
    """The tasks of a call that were not seen before. They are marked as seen; `enqueue` adds them."""

    def __init__(self, paused: int, finished: bool, number: int, fingerprints: Sequence[int]) -> None:
        self.draining = paused == DRAINING
        self.finished = finished
        self.number = number
        self.fingerprints = frozenset(fingerprints)


async def admit(tx: JobTransaction, tasks: Sequence[Task]) -> list[Admission]:
    """Mark as seen and enqueue in one transaction: otherwise a crash could lose URLs for ever."""
    if not tasks:
        return []
    fresh = await mark(tx, tasks)
    if fresh.fingerprints:
        new = [task for task in tasks if task.fingerprint in fresh.fingerprints]
        await chains.lock(tx, {task.chain for task in new if task.chain})
        await tx.lock_for(new)
    return await enqueue(tx, tasks, fresh)


async def mark(tx: JobTransaction, tasks: Sequence[Task]) -> Fresh:
    """Mark the tasks as seen; sets the time of the transaction."""
    # Sorted: two calls with the same fingerprints would deadlock.
    given = sorted({task.fingerprint for task in tasks})
    row = await tx.db.fetchrow(_MARK.format(job=tx.job), given, tx.job, tx.given_now)
    if row is None:
        raise gone()
    tx.now = row[0]
    return Fresh(row[1], row[2] is not None, row[3], row[4])


async def enqueue(tx: JobTransaction, tasks: Sequence[Task], fresh: Fresh) -> list[Admission]:
    """Queue what is new; its lanes are locked."""
    left = set(fresh.fingerprints)
    refused: set[int] = set()
    answers: list[Admission] = []
    steps: list[tuple[TaskRow, Moment]] = []
    base, place = fresh.number, 0
    for task in tasks:
        if task.fingerprint in refused:
            answers.append(Admission.REFUSED)
        elif task.fingerprint not in left:
            answers.append(Admission.DUPLICATE)
        elif fresh.draining or tx.lane_of(task).paused == DRAINING:
            refused.add(task.fingerprint)
            answers.append(Admission.REFUSED)
        else:
            left.remove(task.fingerprint)
            answers.append(Admission.NEW)
            if place == MOST_AT_ONCE:
                # The next ids belong to other calls.
                base, place = await tx.db.fetchval("SELECT nextval('task_id')"), 0
            row = row_of(tx, task, base << ID_BITS | place)
            place += 1
            if task.chain:
                steps.append((row, task.not_before))
            elif tx.store.shelves and shelve_tasks.takes(tx, row, task):
                tx.shelve(row, task)
            else:
                tx.queue(row, task.not_before)
    if refused:
        await _refuse(tx, refused, answers)
    if steps:
        await chains.admit(tx, steps)
    if fresh.finished and Admission.NEW in answers:
        tx.reopen()
    return answers


async def _refuse(tx: JobTransaction, refused: set[int], answers: list[Admission]) -> None:
    """Not marked as seen: they may be admitted after a resume."""
    await tx.db.execute(f"DELETE FROM seen_{tx.job} WHERE fp = ANY($1::bigint[])", sorted(refused))
    tx.tallies[_REFUSED] += answers.count(Admission.REFUSED)


def row_of(tx: JobTransaction, task: Task, number: int) -> TaskRow:
    return TaskRow(
        id=number,
        lane=tx.lane_of(task).id,
        level=level_of(task.priority),
        attempt=level_of(task.attempt),
        deaths=0,
        kills=0,
        fp=task.fingerprint,
        chain=chains.key_of(task.chain),
        body=task_json.encode(task),
    )


def level_of(priority: int) -> int:
    """A number that its column can hold."""
    return max(-_LARGEST, min(_LARGEST, priority))

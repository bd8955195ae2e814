"""What a frontier should know, as a plain dict: the model that the state machine compares with."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from trotline.model.job import State
from trotline.model.lease import Admission, LaneFeedback, Lease
from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.model.verdict import Kind

WAITING, LEASED, DONE, DEAD = "waiting", "leased", "done", "dead"
BAD_NEWS = frozenset({Kind.BROKEN, Kind.UNREACHABLE, Kind.THROTTLED})
KILLS = 2


@dataclass
class Known:
    task: Task
    place: int
    """Its place in the order of arrival."""
    due: Moment
    state: str = WAITING
    fresh: bool = True
    """Never leased: its place in the queue is promised."""
    kills: int = 0
    why: str = ""
    worker: str = ""
    lease: Lease | None = None


class Model:
    def __init__(self, narrow: dict[str, int]) -> None:
        self.tasks: dict[int, Known] = {}
        self.standing: dict[str | None, State] = {}
        """What the operator wants of the job (None) and of lanes, where it is not that they run."""
        self.refused = 0
        self.sealed = False
        self._narrow = narrow
        """Lanes with few places, and how many each has."""
        self._announced = False
        self._troubled: set[str] = set()
        """Lanes with bad news: a frontier decides by itself how slowly it goes on there."""
        self._rests: dict[str, Moment] = {}
        self._tokens: set[int] = set()

    # Looking

    def having(self, state: str) -> list[Known]:
        return [known for known in self.tasks.values() if known.state == state]

    def held_by(self, worker: str) -> list[Known]:
        return [known for known in self.having(LEASED) if known.worker == worker]

    def pick(self, state: str, which: int) -> Known:
        those = self.having(state)
        return those[which % len(those)]

    def delayed(self, now: Moment) -> list[Known]:
        return [known for known in self.having(WAITING) if known.due > now]

    def finished(self) -> bool:
        return self.sealed and not self.having(WAITING) and not self.having(LEASED)

    def ended(self) -> bool:
        """May workers go home?"""
        return self.finished() or self.standing.get(None) is State.CANCELLED

    def servable(self, now: Moment) -> int:
        """At least so many leases must come, if that many are asked for. Retries are capped, so they do not count."""
        certain: dict[str, int] = {}
        for known in self._runnable(now):
            if known.task.attempt == 0 and known.task.lane not in self._troubled:
                certain[known.task.lane] = certain.get(known.task.lane, 0) + 1
        return sum(max(0, min(count, self._places(lane))) for lane, count in certain.items())

    def _runnable(self, now: Moment) -> list[Known]:
        if self.standing.get(None) in (State.PAUSED, State.CANCELLED):
            return []
        return [
            known
            for known in self.having(WAITING)
            if known.due <= now
            and self.standing.get(known.task.lane) is not State.PAUSED
            and self._rests.get(known.task.lane, 0) <= now
        ]

    def _places(self, lane: str) -> int:
        return self._narrow.get(lane, 10_000) - sum(known.task.lane == lane for known in self.having(LEASED))

    # Happening

    def put(self, tasks: Sequence[Task], now: Moment) -> list[Admission]:
        answers = []
        for task in tasks:
            if task.fingerprint in self.tasks:
                answers.append(Admission.DUPLICATE)
                continue
            if State.DRAINING in (self.standing.get(None), self.standing.get(task.lane)):
                self.refused += 1
                answers.append(Admission.REFUSED)
                continue
            self.tasks[task.fingerprint] = Known(task, len(self.tasks), max(task.not_before, now))
            self._announced = False
            answers.append(Admission.NEW)
        return answers

    def leased(self, worker: str, leases: Sequence[Lease], now: Moment) -> None:
        """Take over what was leased, and hold the frontier to it."""
        runnable = {known.task.fingerprint for known in self._runnable(now)}
        for lease in leases:
            assert lease.task.fingerprint in self.tasks, f"leased, but never admitted: {lease.task}"
            known = self.tasks[lease.task.fingerprint]
            assert known.state == WAITING, f"leased while {known.state}: {known}"
            assert lease.task.fingerprint in runnable, f"leased before its time, or from a lane that rests: {known}"
            assert lease.token not in self._tokens, "a token fences only if it is never used again"
            assert replace(lease.task, priority=known.task.priority) == known.task
            self._tokens.add(lease.token)
            known.state, known.worker, known.lease = LEASED, worker, lease
        for lane in {lease.task.lane for lease in leases}:
            assert self._places(lane) >= 0, f"more leases in {lane} than it has places"

    def in_order(self, leases: Sequence[Lease], now: Moment) -> None:
        """Of tasks never leased before, none that may run is passed over by one of later priority or arrival."""
        left = [known for known in self._runnable(now) if known.fresh and known.task.lane not in self._troubled]
        left = [known for known in left if self._places(known.task.lane) > 0]
        for lease in leases:
            known = self.tasks[lease.task.fingerprint]
            was_fresh, known.fresh = known.fresh, False
            if not was_fresh:
                continue
            for other in left:
                assert other.task.priority >= known.task.priority, f"{other} was passed over by {known}"
                # Who had to wait for its time joins the queue when that has come.
                timed = other.task.not_before or known.task.not_before
                if other.task.lane == known.task.lane and other.task.priority == known.task.priority and not timed:
                    assert other.place > known.place, f"{other} came before {known}"

    def settled(
        self, lease: Lease, outcome: Outcome, children: Sequence[Task], news: LaneFeedback | None, now: Moment
    ) -> None:
        known = self.tasks[lease.task.fingerprint]
        lane = known.task.lane
        match outcome:
            case Done():
                self._end(known, DONE)
            case Bury(why=why):
                self._end(known, DEAD, why)
            case Retry(wait=wait):
                self._wait(known, now + wait, attempts=1)
            case Snooze(wait=wait, task=moved):
                known.task = replace(moved, attempt=known.task.attempt) if moved is not None else known.task
                self._wait(known, now + wait, attempts=0)
        if news is not None and news.kind in BAD_NEWS:
            self._troubled.add(lane)
            self._rests[lane] = max(self._rests.get(lane, 0.0), now + news.rest)
        self.put(children, now)

    def given_back(self, worker: str, now: Moment, guilty: Lease | None = None) -> int:
        """How many it held."""
        held = self.held_by(worker)
        for known in held:
            if guilty is None or known.lease is not guilty:
                self._wait(known, now, attempts=0)
                continue
            known.kills += 1
            if known.kills >= KILLS:
                self._end(known, DEAD, "killed")
            else:
                self._wait(known, now, attempts=1)
        return len(held)

    def rescued(self, worker: str, now: Moment) -> None:
        for known in self.held_by(worker):
            self._wait(known, now, attempts=1)

    def revived(self, chosen: Sequence[Known], now: Moment) -> None:
        for known in chosen:
            known.task = replace(known.task, attempt=0)
            known.kills, known.why = 0, ""
            self._wait(known, now, attempts=0)
            self._announced = False

    def cancelled(self, lane: str) -> int:
        """How many waited in the lane."""
        doomed = [known for known in self.having(WAITING) if known.task.lane == lane]
        for known in doomed:
            self._end(known, DEAD, "cancelled")
        return len(doomed)

    def repaced(self, lane: str, concurrency: int) -> None:
        self._narrow[lane] = concurrency

    def announce(self) -> bool:
        """Is it now that the end is to be announced?"""
        first = self.finished() and not self._announced
        self._announced = self._announced or first
        return first

    def _wait(self, known: Known, due: Moment, attempts: int) -> None:
        known.state, known.due, known.fresh, known.lease, known.worker = WAITING, due, False, None, ""
        known.task = replace(known.task, attempt=known.task.attempt + attempts)

    def _end(self, known: Known, state: str, why: str = "") -> None:
        known.state, known.why, known.fresh, known.lease, known.worker = state, why, False, None, ""

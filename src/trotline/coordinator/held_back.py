"""What holds a job back, from the heartbeats of its workers."""

from collections import Counter
from collections.abc import Sequence

from trotline.model.job import WorkerView
from trotline.ports.frontier import DEAD_AFTER


def held_back_by(crew: Sequence[WorkerView]) -> str:
    """What most of the running workers with tasks report, and how many: "sink is unreachable: ...
    (3 of 3 workers)". Empty if most of them work."""
    living = [worker for worker in crew if worker.silent_for < DEAD_AFTER]
    # One that has nothing to do would not notice.
    asked = [worker.about.held_back for worker in living if worker.leased or worker.about.held_back]
    causes = Counter(_cause(said) for said in asked if said)
    if not causes:
        return ""
    [(cause, number)] = causes.most_common(1)
    if 2 * number <= len(asked):
        return ""
    first = next(said for said in asked if _cause(said) == cause)
    return f"{first} ({number:,} of {len(living):,} worker{'' if len(living) == 1 else 's'})"


def _cause(said: str) -> str:
    """Without the details, which differ from worker to worker: "sink is slow: 7 visits wait to be stored"."""
    return said.partition(": ")[0]

"""What holds a job back, from what its workers say with their heartbeats."""

from collections import Counter
from collections.abc import Sequence

from trotline.model.job import WorkerView
from trotline.ports.frontier import DEAD_AFTER


def held_back_by(crew: Sequence[WorkerView]) -> str:
    """What most of the living workers say, and how many they are: "sink is away: ... (3 of 3 workers)". Empty if most
    of them lease."""
    living = [worker.about.held_back for worker in crew if worker.silent_for < DEAD_AFTER]
    causes = Counter(_cause(said) for said in living if said)
    if not causes:
        return ""
    [(cause, number)] = causes.most_common(1)
    if 2 * number <= len(living):
        return ""
    first = next(said for said in living if _cause(said) == cause)
    return f"{first} ({number:,} of {len(living):,} worker{'' if len(living) == 1 else 's'})"


def _cause(said: str) -> str:
    """Without the details, which differ from worker to worker: "sink is slow: 7 visits wait to be stored"."""
    return said.partition(": ")[0]

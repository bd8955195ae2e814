"""What holds a job back: by the heartbeats of its workers, and routes that none of them takes."""

from collections import Counter
from collections.abc import Sequence

from trotline.model.job import Job, WorkerView
from trotline.ports.console import Console
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules import route_queues


async def held_back_of(console: Console, job: Job, crew: Sequence[WorkerView]) -> str:
    """The same as `held_back_by`, or which routes no running worker takes."""
    return held_back_by(crew) or await untaken_routes(console, job, crew)


async def untaken_routes(console: Console, job: Job, crew: Sequence[WorkerView]) -> str:
    """Tasks wait, and no running worker takes their route: "120 tasks of route product wait: no worker takes it". The
    tasks are counted only if no worker takes all routes."""
    living = [worker.about.routes for worker in crew if worker.silent_for < DEAD_AFTER]
    if not job.rules.queues or not living or not all(living):
        return ""
    return route_queues.untaken(await console.waiting_routes(), {route for routes in living for route in routes})


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

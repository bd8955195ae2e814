"""When a job ends: from the samples that are kept of it, or why there is no estimate."""

from collections.abc import Iterable, Sequence

from trotline.model.job import LaneView, Progress, State, WorkerView
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules.eta import WINDOWS, Range, Sample, Unknown, estimate
from trotline.rules.eta_bounds import delays_of, load_of
from trotline.rules.lane_survey import rests_after_failures
from trotline.rules.pool_troubles import PoolTrouble, are_all, holds_all
from trotline.rules.time_series import Point

FEED = "feed cannot be written"
"""Of a process of the Scrapy bridge (bridges/scrapy/unwritten.py)."""
DENIES = "archive denies access"
_OUTAGES = {
    "sink is unreachable": Unknown.SINK_UNREACHABLE,
    "archive is unreachable": Unknown.ARCHIVE_UNREACHABLE,
    DENIES: Unknown.ARCHIVE_DENIES,
    "frontier is unreachable": Unknown.FRONTIER_UNREACHABLE,
    FEED: Unknown.FEED_UNWRITABLE,
}


def living(crew: Iterable[WorkerView]) -> int:
    """Workers with a recent heartbeat."""
    return sum(worker.silent_for < DEAD_AFTER for worker in crew)


def outage(held_back: str) -> Unknown | None:
    """Why no page can be finished now; None if pages can, however slowly."""
    return next((why for begin, why in _OUTAGES.items() if held_back.startswith(begin)), None)


def outage_text(held_back: str) -> str:
    """What holds a worker back, if it is a server or a disk that does not work; empty if it only waits."""
    return held_back if outage(held_back) is not None else ""


_REFUSED = "authentication failed"
"""In the messages of adapters."""


def consequence(held_back: str) -> str:
    """What an outage means for a job."""
    if held_back.startswith(FEED):
        return "make room on its disk: nothing is lost, and its pages are settled when the file can be written"
    if held_back.startswith(DENIES):
        wrong = (
            "set the clock of its machine"
            if "RequestTimeTooSkewed" in held_back
            else "check its credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ?credentials=) and the policy "
            "of the bucket"
        )
        return f"nothing is lost, and workers go on by themselves when they are accepted; {wrong}"
    if _REFUSED in held_back:
        return (
            "nothing is lost; if the password has changed, write the new one to its file (password=file:PATH is read "
            "again at every connection), or restart with the new URL"
        )
    return "nothing is lost, and workers go on by themselves when it answers"


GONE = "was forgotten (trotline jobs --forget), or its frontier lost its data: its tasks are gone"
"""A server that was replaced by an empty one gives the same answer."""


def no_estimate(progress: Progress, held_back: str, *, alive: bool) -> Unknown | None:
    """Why a guess from the past would be wrong; None if it may be made. `alive`: are there workers?"""
    if progress.paused:
        return Unknown.PAUSED
    if progress.state is State.CANCELLED:
        # Its workers have left, and wait for another job.
        return Unknown.CANCELLED
    if progress.sealed and progress.waiting + progress.leased and not alive:
        return Unknown.ALONE
    if reason := outage(held_back):
        return reason
    if not progress.waiting + progress.leased and not progress.sealed:
        # Nothing to do is not the end while seeds are still coming.
        return Unknown.TOO_EARLY
    return None


def standstill(lanes: Sequence[LaneView], troubles: Sequence[PoolTrouble], waiting: int) -> Unknown | None:
    """Why no page ends now, although nothing is unreachable; None if pages may. `lanes`: those that stand out;
    `waiting`: the tasks of all lanes."""
    if holds_all(lanes, troubles, waiting):
        return Unknown.POOLS
    with_work = [lane for lane in lanes if lane.waiting and lane.state is State.RUNNING]
    rest = with_work and all(rests_after_failures(lane) for lane in with_work) and are_all(lanes, waiting)
    return Unknown.RESTING if rest else None


def of_series(
    points: Sequence[Point], progress: Progress, lanes: Iterable[LaneView], held_back: str, *, alive: bool
) -> Range | Unknown:
    """The estimate of a job that others observed. `points`: the finest that there are, the oldest first."""
    if reason := no_estimate(progress, held_back, alive=alive):
        return reason
    began, since = progress.started_at, progress.now - 2 * max(WINDOWS)
    samples = [Sample(point.at - began, point.ended, point.admitted) for point in points if point.at >= since]
    newest = Sample(progress.now - began, progress.ended, progress.admitted)
    if not samples or samples[-1].at < newest.at:
        samples.append(newest)
    if len(samples) == 1:
        # Met in the middle of its life: until some of it was seen, its average must do.
        samples.insert(0, Sample(0.0, 0, progress.admitted))
    pages_left = None if progress.budget.pages is None else max(0, progress.budget.pages - progress.ended)
    remaining = progress.waiting + progress.leased
    return estimate(samples, remaining, map(load_of, lanes), pages_left, delays_of(progress))

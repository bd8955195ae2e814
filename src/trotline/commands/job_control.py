"""What an operator wants of a job, or of one lane of it: pause, resume, drain, cancel."""

import difflib
from enum import StrEnum

import msgspec

from trotline.errors import SettingsError
from trotline.model.job import Budget, Job, State
from trotline.model.queue_job import has_ended
from trotline.model.time import Seconds
from trotline.ports.console import Console

_ALL_LANES = 100_000
"""Enough to know whether a lane is there at all."""


class Verb(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    CANCEL = "cancel"


_STATES = {
    Verb.PAUSE: State.PAUSED,
    Verb.RESUME: State.RUNNING,
    Verb.DRAIN: State.DRAINING,
    Verb.CANCEL: State.CANCELLED,
}


class Steered(msgspec.Struct, frozen=True, kw_only=True):
    before: State
    """Of the job."""
    buried: int = 0
    """Tasks of a lane that was cancelled."""
    lifted: str = ""
    """The limit that the job had reached, and that was lifted: "max_pages=10"."""
    rest: Seconds = 0.0
    """That the lane which was resumed had left, ..."""
    rest_why: str = ""
    rest_ended: bool = False
    """... and whether it is over now: one that was paused goes on with its rest."""


async def steer(console: Console, job: Job, verb: Verb, lane: str | None = None) -> Steered:
    """SettingsError if the job is finished, or has no task in the lane."""
    if lane is None and (job.announced or has_ended(job)):
        raise SettingsError(f"{job.id} is finished", hint="See which jobs are not: trotline jobs")
    if lane is not None and verb is not Verb.RESUME:
        await _check_lane(console, job, lane)
    before = await console.progress()
    lifted = before.spent if verb is Verb.RESUME and lane is None else ""
    if lifted:
        await console.set_budget(Budget())
    rests = await console.lane_views([lane]) if lane is not None and verb is Verb.RESUME else []
    buried = await console.steer(_STATES[verb], lane)
    done = Steered(before=before.state, buried=buried, lifted=lifted)
    for view in rests:
        ended = view.state is State.RUNNING and view.rests_for > 0
        done = msgspec.structs.replace(done, rest=view.rests_for, rest_why=view.why, rest_ended=ended)
    return done


async def _check_lane(console: Console, job: Job, lane: str) -> None:
    """A lane without tasks is probably a typing error."""
    if await console.lane_views([lane]):
        # Asked first: a list of all is no snapshot, and may miss a lane whose last waiting task is leased meanwhile.
        return
    known = [view.lane for view in await console.lanes(_ALL_LANES)]
    if lane in known:
        return
    near = difflib.get_close_matches(lane, known, n=1, cutoff=0.5)
    some = ", ".join(name[:60] for name in known[:5]) + (", ..." if len(known) > 5 else "")
    hint = f"Did you mean {near[0]}?" if near else f"Its lanes: {some}" if known else "No lane has tasks now."
    raise SettingsError(f"{job.id} has no task in a lane {lane!r}", hint=hint)

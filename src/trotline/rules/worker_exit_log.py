"""Workers that left a job or died: when, why, and what they had done. Pure; kept in a note of the job.

A frontier forgets a worker when it leaves, or when its tasks are rescued. An observer compares the crew with the one
before, which is in the note too: so a new observer misses nothing.
"""

from collections.abc import Iterable

import msgspec

from trotline.model.job import Progress, WorkerView
from trotline.model.note import LARGEST_NOTE
from trotline.model.time import Moment, Seconds
from trotline.rules import redaction
from trotline.rules.untrusted_values import MOST, is_moment
from trotline.rules.worker_info import LONGEST_NAME

NOTE = "crew"
"""The name of its note."""
MOST_GONE = 50
"""Workers that are gone; of more, the last ones are kept, and the others counted."""
MOST_PRESENT = 200
"""Workers that are followed; of more, nothing is known when they are gone. They are counted."""
RENEW_EVERY: Seconds = 60.0
"""Figures of workers that are there change with every look: that is not worth a write each time."""
LONGEST_WHY = 200

LEFT = "left"
ENDED = "left: the job had ended"
DIED = "died: it was silent, and others took over its tasks"
KILLED = "died: its process ended without leaving, and others took over its tasks"
_RESCUED = "rescued"
"""The counter of tasks that dead workers held."""


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A worker at the last look."""

    name: str
    host: str = ""
    done: int = 0
    failed: int = 0
    leased: int = 0
    silent_for: Seconds = 0.0
    why: str = ""
    """What held it back."""


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    host: str = ""
    at: Moment
    """Of the first look without it; the frontier's time."""
    why: str
    done: int = 0
    failed: int = 0
    leased: int = 0
    """Tasks that it held at the last look."""


class CrewLog(msgspec.Struct, frozen=True, kw_only=True):
    at: Moment = 0.0
    present: tuple[Member, ...] = ()
    unfollowed: int = 0
    """Workers that are there beside MOST_PRESENT."""
    rescued: int = 0
    gone: tuple[Departure, ...] = ()
    """The last one first."""
    gone_before: int = 0
    """Further ones, before these."""


def step(log: CrewLog, crew: Iterable[WorkerView], progress: Progress, late: Seconds) -> CrewLog:
    """The log after a look; the same object if it is not worth a write. `late`: a worker that was silent for longer has
    not left by itself."""
    now = progress.now
    # After the end a late heartbeat may still list a worker that has left.
    there = [] if progress.finished_at is not None else [_member(worker) for worker in crew]
    names = {member.name for member in there}
    missing = [member for member in log.present if member.name not in names]
    followed = {member.name for member in log.present}
    joined = [member for member in there if member.name not in followed]
    same = not missing and (not joined or len(log.present) >= MOST_PRESENT)
    if same and (not there or 0 <= now - log.at < RENEW_EVERY):
        return log
    rescued = min(MOST, progress.tallies.get(_RESCUED, 0))
    whys = _whys(missing, progress, rescued > log.rescued, late)
    new = [_departure(member, why, now) for member, why in zip(missing, whys, strict=True)]
    gone = (*new, *log.gone)
    # Who is followed stays so, as long as it is there.
    kept = sorted(there, key=lambda member: member.name not in followed)[:MOST_PRESENT]
    return CrewLog(
        at=now,
        present=tuple(kept),
        unfollowed=len(there) - len(kept),
        rescued=rescued,
        gone=gone[:MOST_GONE],
        gone_before=log.gone_before + len(gone[MOST_GONE:]),
    )


def encode(log: CrewLog) -> bytes:
    """Of names that are too long for a note, half are left out, and counted, until the others fit."""
    while len(data := msgspec.msgpack.encode(log)) > LARGEST_NOTE:
        present, gone = len(log.present) // 2, len(log.gone) // 2
        log = msgspec.structs.replace(
            log,
            present=log.present[:present],
            unfollowed=log.unfollowed + len(log.present) - present,
            gone=log.gone[:gone],
            gone_before=log.gone_before + len(log.gone) - gone,
        )
    return data


def decode(data: bytes) -> CrewLog:
    """An empty one, if another program damaged it."""
    if len(data) > LARGEST_NOTE:
        return CrewLog()
    try:
        log = msgspec.msgpack.decode(data, type=CrewLog)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return CrewLog()
    return log if all(is_moment(at) for at in (log.at, *(one.at for one in log.gone))) else CrewLog()


def _member(worker: WorkerView) -> Member:
    return Member(
        worker.name[:LONGEST_NAME],
        worker.about.host[:LONGEST_NAME],
        min(MOST, worker.done),
        min(MOST, worker.failed),
        min(MOST, worker.leased),
        round(worker.silent_for, 1),
        redaction.text(worker.about.held_back[:LONGEST_WHY]),
    )


def _whys(missing: list[Member], progress: Progress, rescued: bool, late: Seconds) -> list[str]:
    silent = [member for member in missing if member.silent_for > late]
    holders = [member for member in missing if member.leased] or missing
    found = []
    for member in missing:
        if member in silent:
            why = DIED
        elif rescued and not silent and member in holders:
            # Its supervisor saw its end at once.
            why = KILLED
        else:
            why = ENDED if progress.finished_at is not None else LEFT
        found.append(why)
    return found


def _departure(member: Member, why: str, now: Moment) -> Departure:
    held = f" ({member.why})" if member.why and why != DIED else ""
    return Departure(
        name=member.name,
        host=member.host,
        at=now,
        why=why + held,
        done=member.done,
        failed=member.failed,
        leased=member.leased,
    )

"""A job as the API shows it."""

import msgspec

from trotline.commands.job_states import rejected, state
from trotline.config.backend_urls import public
from trotline.coordinator.job_eta import living
from trotline.model.job import Job, Progress, WorkerView
from trotline.model.time import Seconds, iso
from trotline.rules.eta import Range, Unknown


class EtaView(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from now; or why there is no estimate."""

    low: Seconds | None = None
    high: Seconds | None = None
    likely: Seconds | None = None
    unknown: str = ""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    spider: str
    frontier: str
    """Without user name and password."""
    state: str
    """"running", "unfinished" (without a worker), "paused", "draining", "cancelled", "finished"; "unknown"."""
    admitted: int | None = None
    """waiting + leased + done + dead. All numbers are null while they are unknown."""
    waiting: int | None = None
    delayed: int | None = None
    """Part of waiting: not before a retry's time."""
    leased: int | None = None
    done: int | None = None
    dead: int | None = None
    records: int | None = None
    """That handlers gave; one that was met twice counts twice."""
    rejected: int | None = None
    """Records that failed validation."""
    bytes: int | None = None
    """Downloaded."""
    pages_per_second: float | None = None
    """Over the last seconds; null until two looks are known."""
    workers: int | None = None
    """With a recent heartbeat."""
    held_back: str = ""
    """Why it does not go on: what most of its workers report, or that all its tasks wait for their proxy pool."""
    pool_troubles: tuple[str, ...] = ()
    """Why tasks wait for a proxy pool, also while others are visited: "all 12 proxies of pool isp rest for ..."."""
    spent: str = ""
    """The limit that it has reached."""
    eta: EtaView | None = None
    deadline_in: Seconds | None = None
    """Until its deadline, which is past if this is negative; null: it has none, or has ended."""
    started_at: str = ""
    finished_at: str | None = None
    version: str = ""
    versions: tuple[str, ...] = ()
    age: Seconds = 0.0
    """Seconds since these figures were read."""
    unreachable: str = ""
    """Why they are not newer."""


def known_by_name(frontier: str, job: Job) -> JobView:
    """Without counters: the frontier could not be asked."""
    return JobView(
        job=job.id,
        spider=job.spider,
        frontier=public(frontier),
        state="finished" if job.finished_at is not None else "unknown",
        started_at=iso(job.started_at),
        finished_at=None if job.finished_at is None else iso(job.finished_at),
        version=job.version,
        versions=job.versions,
    )


def job_view(
    frontier: str,
    job: Job,
    progress: Progress,
    crew: list[WorkerView],
    held_back: str = "",
    pages_per_second: float | None = None,
    eta: Range | Unknown | None = None,
) -> JobView:
    number = living(crew)
    return msgspec.structs.replace(
        known_by_name(frontier, job),
        state=state(progress, alive=number > 0),
        admitted=progress.admitted,
        waiting=progress.waiting,
        delayed=progress.delayed,
        leased=progress.leased,
        done=progress.done,
        dead=progress.dead,
        records=progress.tallies.get("records", 0),
        rejected=rejected(progress),
        bytes=progress.size,
        pages_per_second=pages_per_second,
        workers=number,
        held_back=held_back,
        spent=progress.spent,
        eta=_eta(eta),
        deadline_in=_deadline_in(job, progress),
        finished_at=None if progress.finished_at is None else iso(progress.finished_at),
    )


def _deadline_in(job: Job, progress: Progress) -> Seconds | None:
    if not job.rules.deadline or progress.finished_at is not None:
        return None
    return round(job.started_at + job.rules.deadline - progress.now, 1)


def _eta(found: Range | Unknown | None) -> EtaView | None:
    if found is None:
        return None
    if isinstance(found, Unknown):
        return EtaView(unknown=found.value)
    return EtaView(low=round(found.low, 1), high=round(found.high, 1), likely=round(found.likely, 1))

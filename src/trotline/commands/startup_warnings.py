"""Notes of a run: other workers, changed code, unusable seeds, and pages that are gone from the archive."""

from collections.abc import Sequence
from pathlib import PurePath
from socket import gethostname

from trotline.adapters import host_process
from trotline.commands.resolve_job import JobFound
from trotline.commands.seed import Seeded
from trotline.config.spider_loader import parse_ref
from trotline.model.job import WorkerInfo, WorkerView
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules import redaction
from trotline.rules.archive_loss_note import ArchiveNote

_SEED_REASONS = {
    "host": "out of scope: not one of the spider's hosts",
    "excluded": "out of scope: matches exclude",
    "not included": "out of scope: matches no include pattern",
    "depth": "out of scope: deeper than max_depth",
}
_MOST = 5
"""Bad lines that are quoted."""


def source_of(ref: str) -> str:
    """The name of the file that a job is started from, without its folder, which differs between machines."""
    address = parse_ref(ref)
    return PurePath(address.file).name if address.file else address.module


def about_code(opened: JobFound, ref: str, version: str) -> list[str]:
    """The job goes on with other code than it began with, or the last job of this name was another file's."""
    source, before = source_of(ref), opened.before
    if before is None:
        return []
    begun = before.rules.source
    if begun and begun != source:
        return [
            f"{before.id} was started from {begun}, and this is {source}: two files have a spider named"
            f" {before.spider!r}; rename one of them"
        ]
    if opened.resumed and version and before.version and version != before.version:
        return [
            f"{source} has changed since {before.id} began: pages that were read before keep what the old code stored"
            " (visit all of them again: --fresh)"
        ]
    return []


def about_lost(pages: int, archive: str, *, incomplete: bool = False) -> list[str]:
    """Of this run: the note of the job has those of all workers. `incomplete`: some of its processes died."""
    note = ArchiveNote(lost=pages, place=archive, incomplete=incomplete)
    return [note.sentence.replace(" of this job ", " of this run ", 1)]


async def about_others(opened: OpenJob) -> list[str]:
    """Other runs, and those that were killed on this machine so short ago that their workers are not given up yet."""
    alive = [worker for worker in await opened.console.workers() if worker.silent_for < DEAD_AFTER]
    killed = [worker for worker in alive if _is_not_here(worker.about)]
    found = []
    if others := [worker for worker in alive if worker not in killed]:
        found.append(f"another run works on {opened.job.id} ({_places(others)}): both share its pages and its pace")
    if killed:
        found.append(
            f"a run of {opened.job.id} has ended without saying so ({_places(killed)}): the pages that it held are"
            f" finished, or visited again within {DEAD_AFTER:g} s"
        )
    return found


def _is_not_here(about: WorkerInfo) -> bool:
    """Did it run on this machine, and is there no such process now? Nothing is taken from it for that: it may be one of
    a container that is named like this machine."""
    return about.host == gethostname() and not host_process.exists(about.process)


def _places(workers: Sequence[WorkerView]) -> str:
    return ", ".join(sorted({_place(worker) for worker in workers})[:_MOST])


def _place(worker: WorkerView) -> str:
    about = worker.about
    return f"process {about.process} on {about.host}" if about.host else worker.name


def about_seeds(seeded: Seeded) -> list[str]:
    found = []
    for why, count in seeded.refused.most_common():
        example = seeded.examples.get(why, "")
        such = f", such as {redaction.url(example)}" if example else ""
        seeds = "1 seed is" if count == 1 else f"{count:,} seeds are"
        found.append(f"{seeds} not visited: {_SEED_REASONS.get(why, why)}{such}")
    return [*found, bad_lines(seeded)] if seeded.bad else found


def bad_lines(seeded: Seeded) -> str:
    """Which lines of the file of seeds cannot be used; empty if all can."""
    if not seeded.bad:
        return ""
    quoted = "; ".join(f"line {line}: {why}" for line, why in seeded.bad_lines[:_MOST])
    lines = "1 line" if seeded.bad == 1 else f"{seeded.bad:,} lines"
    return f"{lines} of the seeds cannot be used: {quoted}" + ("; ..." if seeded.bad > _MOST else "")

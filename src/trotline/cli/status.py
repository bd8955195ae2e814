"""`trotline status`: the jobs of this folder and how far they are."""

import asyncio
from typing import TYPE_CHECKING

import click
import msgspec

from trotline.cli import dead_reasons_view
from trotline.cli.archive_view import archive_facts
from trotline.cli.counter_names import plain
from trotline.cli.formatting import (
    by_number,
    columns,
    count,
    every,
    json_line,
    length,
    rest,
    retries_limited,
    safe,
    task_counts,
    task_states,
)
from trotline.cli.job_argument import Target, console_of, find, jobs_here
from trotline.cli.limit_cuts_view import cut_lines
from trotline.cli.options import examples, frontier_option, json_option, settings_of, wait_for
from trotline.cli.outage_remedy import remedy
from trotline.cli.pool_view import use_line
from trotline.cli.resume_hint import go_on
from trotline.cli.suggested_commands import file_of, same
from trotline.cli.summary import alike
from trotline.commands.job_states import rejected, state
from trotline.commands.open_pools import pool_watch
from trotline.commands.previous_job import tallies_before
from trotline.commands.run_report import coverage_warnings
from trotline.config.backend_urls import public
from trotline.coordinator.held_back import held_back_of
from trotline.coordinator.job_eta import living
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.job import Job, LaneView, Progress, WorkerView
from trotline.model.queue_job import is_scrapy
from trotline.model.time import iso
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules import archive_loss_note, merge_note
from trotline.rules.archive_loss_note import ArchiveNote
from trotline.rules.author_warnings import FACTS, warnings
from trotline.rules.field_coverage import coverage
from trotline.rules.job_figures import LISTING
from trotline.rules.limit_cuts import cuts
from trotline.rules.merge_note import MergeNote
from trotline.rules.pool_tallies import POOL_FACTS, uses
from trotline.rules.pool_trouble_texts import trouble_lines
from trotline.rules.pool_troubles import PoolTrouble, served_by
from trotline.rules.proxy_reasons import grouped
from trotline.rules.retry_tallies import RETRY_FACTS
from trotline.rules.unreadable_jobs import in_a_line

if TYPE_CHECKING:
    from trotline.config.settings import Settings
    from trotline.ports.console import Console

_MOST = 20
_AT_ONCE = 8
"""Jobs that are looked at together: a broker without an answer, or with lost tasks, takes seconds for each."""
_LINE = 400


class Look(msgspec.Struct, frozen=True):
    target: Target
    progress: Progress
    lanes: list[LaneView] = []
    reasons: dict[str, int] = {}
    alive: bool = True
    """Some worker is running, if this was queried."""
    workers: int = 0
    """Running workers, if they were queried."""
    held_back: str = ""
    """What blocks most of its workers."""
    troubles: list[PoolTrouble] = []
    """Why tasks of lanes with a proxy pool wait."""
    crew: list[WorkerView] = []
    merge: MergeNote | None = None
    """What the merge after the job gave. None: there was none."""
    archive: ArchiveNote | None = None
    """Pages that are gone from the archive. None: it is not known of any."""
    coverage_warnings: list[str] = []
    """Fields that are filled less often than in the last job."""


@click.command(
    epilog=examples(
        "trotline status            every job of this folder, one line each",
        "trotline status shop       the newest job of one spider, with its lanes and its dead",
        "trotline status --json     the same for machines",
    )
)
@click.argument("job", required=False)
@frontier_option
@json_option
def command(job: str | None, frontier: str | None, as_json: bool) -> None:
    """Show the jobs of this folder and how far they are. Looking never disturbs a run.

    JOB is a spider's name, its file, or a job's id.
    """
    settings = settings_of(frontier=frontier)
    looks = [wait_for(_closely(settings, job))] if job else wait_for(_all(settings))
    if as_json:
        for look in looks:
            click.echo(json_line(facts(look)))
    elif job:
        click.echo("\n".join(portrait(looks[0])))
    elif looks:
        click.echo("\n".join(table(looks)))
    else:
        click.echo("There is no job here yet. Start one with:  trotline run FILE")


async def _closely(settings: "Settings", job: str) -> Look:
    target = await find(settings, job)
    async with console_of(target) as console:
        look = await _look(target, console)
        lanes = await console.lanes()
        served = served_by([worker for worker in look.crew if worker.silent_for < DEAD_AFTER])
        async with pool_watch(target.frontier) as pools:
            is_over = look.progress.finished_at is not None
            troubles = [] if is_over else await pools.troubles(lanes, served, look.progress.tallies)
        before = tallies_before(target.frontier, target.job)
        return msgspec.structs.replace(
            look,
            lanes=lanes,
            reasons=await console.reasons(),
            troubles=troubles,
            merge=await _merge(console),
            archive=await _archive(console, look.progress),
            coverage_warnings=await coverage_warnings(look.progress.tallies, before),
        )


async def _merge(console: "Console") -> MergeNote | None:
    [note] = await console.read_notes([merge_note.NOTE])
    return merge_note.decode(note.data) if note is not None else None


async def _archive(console: "Console", progress: Progress) -> ArchiveNote | None:
    [note] = await console.read_notes([archive_loss_note.NOTE])
    return archive_loss_note.of_job(note, progress)


async def _all(settings: "Settings") -> list[Look]:
    looks, damaged = await look_at_all((await jobs_here(settings))[-_MOST:])
    for target in damaged:
        click.echo(safe(in_a_line(target.job.id), _LINE), err=True)
    return looks


async def look_at_all(targets: list[Target], *, lanes: bool = False) -> tuple[list[Look], list[Target]]:
    """The jobs, and those whose keys cannot be read; `lanes`: with the lanes of unfinished jobs."""
    free = asyncio.Semaphore(_AT_ONCE)
    found = await asyncio.gather(*(_one_of_many(target, free, lanes=lanes) for target in targets))
    if unreachable := next((one for one in found if isinstance(one, FrontierUnreachable)), None):
        raise unreachable
    return [one for one in found if isinstance(one, Look)], [one for one in found if isinstance(one, Target)]


async def _one_of_many(
    target: Target, free: asyncio.Semaphore, *, lanes: bool
) -> "Look | Target | FrontierUnreachable":
    """The target itself: its keys cannot be read."""
    async with free:
        try:
            async with console_of(target) as console:
                look = await _look(target, console)
                if lanes and look.progress.finished_at is None:
                    look = msgspec.structs.replace(look, lanes=await console.lanes())
                return look
        except FrontierUnreachable as error:
            return error
        except FrontierError:
            return target


async def _look(target: Target, console: "Console") -> Look:
    progress = await console.progress()
    crew = await console.workers() if progress.finished_at is None else []
    number = living(crew)
    held_back = progress.missing or await held_back_of(console, target.job, crew) or progress.broker
    return Look(target, progress, alive=number > 0, workers=number, held_back=held_back, crew=crew)


def table(looks: list[Look]) -> list[str]:
    head = ("job", "state", "waiting", "leased", "done", "dead", "rejected", "started")
    rows: list[tuple[str, ...]] = [head]
    for look in looks:
        p = look.progress
        numbers = map(count, (p.waiting, p.leased, p.done, p.dead, rejected(p)))
        rows.append((safe(look.target.job.id, 40), state(p, alive=look.alive), *numbers, f"{_age(p)} ago"))
    return [*columns(rows, right=(2, 3, 4, 5, 6)), *held_back_lines(looks)]


def held_back_lines(looks: list[Look]) -> list[str]:
    return [f"{safe(look.target.job.id, 40)}: {safe(look.held_back)}" for look in looks if look.held_back]


def _age(progress: Progress) -> str:
    return length(max(0.0, progress.now - progress.started_at))


def portrait(look: Look) -> list[str]:
    p, job = look.progress, look.target.job
    lines = [
        f"{safe(job.id)}  {state(p, alive=look.alive)}, started {_age(p)} ago",
        f"{task_states(p)}  rejected {count(rejected(p))}",
    ]
    lines[1:1] = [*held_back(look.held_back, job), *trouble_lines(look.troubles, _MOST)]
    lines += [f"cut: {text}" for text in cut_lines(cuts(p, job.rules.own_limits))]
    if p.seen:
        lines.append(f"seen: {safe(p.seen, 200)}")
    lines += [f"warning: {safe(text)}" for text in (*warnings(p.tallies), *look.coverage_warnings)]
    if look.archive is not None:
        lines.append(f"archive: {safe(look.archive.sentence, _LINE)}")
    if look.merge is not None:
        lines += merge_lines(look.merge, look.target.job.spider)
    if happened := {
        name: number
        for name, number in p.tallies.items()
        if not name.startswith((*FACTS, *POOL_FACTS, *RETRY_FACTS, LISTING))
    }:
        ordered = by_number(grouped(happened), _MOST)
        lines += ["", "what happened", *(f"{count(number):>9}  {safe(plain(name), 200)}" for name, number in ordered)]
    if twins := alike(p.tallies, p.examples):
        lines += ["", "pages that are alike", *(f"{'':>4}{text}" for text in twins)]
    if used := uses(p.tallies):
        lines += ["", "pools", *(f"{'':>4}{use_line(use)}" for use in used[:_MOST])]
    if look.lanes:
        lines += ["", "lanes", *map(lane_line, look.lanes[:_MOST])]
    if look.reasons:
        lines += dead_reasons_view.tables(look.reasons, _MOST)
        lines += ["", f"look at them: {same('dead', look.target.name)}"]
        if p.dead and p.finished_at is not None and is_scrapy(job):
            again = same("dead", look.target.name, "--revive")
            lines.append(f"what the dead pages link to was not visited; visit them again: {again}")
    if hint := go_on(look.target, p, look.workers):
        lines += ["", hint]
    return lines


def merge_lines(merge: MergeNote, spider: str) -> list[str]:
    lines = [f"merged: {safe(merge.sentence, _LINE)}"]
    # By the rule of its file, as the coordinator did.
    again = same("merge", file_of(spider))
    if merge.error:
        lines.append(f"try it: {again}")
    elif merge.totals.review:
        lines.append(f"decide: {again} --review")
    return lines


def held_back(said: str, job: Job) -> list[str]:
    """Why the job does not go on, and what to do."""
    lines = [f"held back: {safe(said)}" if said else "", remedy(said, job)]
    return [line for line in lines if line]


def lane_line(lane: LaneView) -> str:
    resting = rest(lane)
    limited = retries_limited(lane)
    more = f"  rests: {resting}" if resting else f"  {limited}" if limited else ""
    return f"{count(lane.waiting):>9}  {safe(lane.lane, 100)}  every {every(lane)}{more}"


def facts(look: Look) -> dict[str, object]:
    p = look.progress
    return {
        "job": look.target.job.id,
        "spider": look.target.job.spider,
        "frontier": public(look.target.frontier),
        "state": state(p, alive=look.alive),
        "started_at": iso(p.started_at),
        "finished_at": iso(p.finished_at) if p.finished_at is not None else None,
        **task_counts(p),
        "rejected": rejected(p),
        "seen": p.seen,
        "tallies": p.tallies,
        "examples": p.examples,
        "cuts": cuts(p, look.target.job.rules.own_limits),
        "held_back": look.held_back,
        "pools": uses(p.tallies),
        "pool_troubles": look.troubles,
        "lanes": look.lanes,
        "reasons": look.reasons,
        "merge": look.merge,
        **archive_facts(look.archive),
        "coverage": [{**msgspec.structs.asdict(each), "share": each.share} for each in coverage(p.tallies)],
        "warnings": [*warnings(p.tallies), *look.coverage_warnings],
    }

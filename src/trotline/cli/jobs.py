"""`trotline jobs`: the jobs of a frontier, one line each."""

import time
from collections.abc import Sequence
from typing import Any

import click

from trotline.cli.fleet_options import place_option
from trotline.cli.formatting import columns, count, eta, json_line, length, safe, task_counts
from trotline.cli.job_argument import Target, not_here, spider_name, survey
from trotline.cli.jobs_forget import ALL, chosen, print_all_forgotten, print_forgotten
from trotline.cli.options import age_of, examples, json_option, settings_of, wait_for
from trotline.cli.plain_views import eta_facts
from trotline.cli.status import Look, held_back_lines, look_at_all
from trotline.commands.job_states import state
from trotline.commands.jobs_forget import forget, forget_id
from trotline.config.backend_urls import public
from trotline.config.backends import unwritten
from trotline.coordinator.job_eta import outage, standstill
from trotline.model.job import State
from trotline.model.time import Seconds, iso
from trotline.rules.eta import Range, Sample, Unknown, estimate
from trotline.rules.eta_bounds import delays_of, load_of
from trotline.rules.unreadable_jobs import in_a_line

_HEAD = ("job", "spider", "state", "waiting", "leased", "done", "dead", "started", "ends in")
_LINE = 400
_LISTED = 30


@click.command(
    epilog=examples(
        "trotline jobs --frontier redis://queue:6379/0 --json     every job of a server, for machines",
        "trotline jobs shop --unfinished                          what is still to be done for one spider",
        "trotline jobs --forget shop-3                            remove all that is kept of a job; its records stay",
        "trotline jobs --forget --older-than 7d                   remove those that ended more than a week ago",
    )
)
@click.argument("spider", required=False)
@click.option("--unfinished", is_flag=True, help="Only those that are not finished.")
@click.option("--limit", type=click.IntRange(1), help=f"How many, the newest.  [default: {_LISTED}]")
@click.option("--older-than", metavar="TIME", help="Only those that were finished or cancelled so long ago.")
@click.option(
    "--forget",
    "to_forget",
    metavar="ID",
    is_flag=False,
    flag_value=ALL,
    help="Remove all that is kept of a job, or (with --older-than) of those listed.",
)
@click.option("--force", is_flag=True, help="Also one that has not ended, with --forget.")
@place_option
@json_option
def command(
    spider: str | None,
    unfinished: bool,
    limit: int | None,
    older_than: str | None,
    to_forget: str | None,
    force: bool,
    frontier: str | None,
    as_json: bool,
) -> None:
    """List the jobs of a frontier, the oldest first, or forget some. SPIDER is a spider's name or file.

    A job that has not ended, or in which workers take part, is not forgotten unless --force is given.
    `trotline start` and `trotline work` forget jobs that ended more than 14 days ago, two at a time; a spider's
    newest job stays.
    """
    if force and to_forget is None:
        raise click.UsageError("--force belongs to --forget")
    if limit is not None and to_forget is not None:
        raise click.UsageError("--limit has no effect on --forget, which forgets all that the other options choose")
    age = age_of("--older-than", older_than) if older_than else None
    settings = settings_of(frontier=frontier)
    here = wait_for(survey(settings))
    if to_forget is not None and (unreadable := [one for one in here.unreadable if one[1] == to_forget]):
        for place, job in unreadable:
            wait_for(forget_id(place, job))
            print_forgotten(job, json=as_json)
        return
    targets = _targets(here.targets, spider, unfinished, age)
    if spider and not _targets(here.targets, spider) and not any(_is_of(job, spider) for _, job in here.unreadable):
        raise not_here(settings, spider_name(spider), here.targets)
    if to_forget is not None:
        gone = chosen(targets, to_forget, filtered=age is not None)
        wait_for(forget(gone, force=force))
        print_all_forgotten(gone, json=as_json)
        return
    looks, damaged = wait_for(look_at_all(targets[-(limit or _LISTED) :], lanes=True))
    broken = [(target.frontier, target.job.id) for target in damaged]
    if age is None:
        broken += [(place, job) for place, job in here.unreadable if _is_of(job, spider)]
    waiting = wait_for(_unwritten([look.target for look in looks]))
    if as_json:
        for look in looks:
            click.echo(json_line(facts(look) | {"unwritten": waiting.get(look.target.job.id, 0)}))
        for place, job in broken:
            click.echo(json_line({"job": job, "frontier": public(place), "state": "cannot be read"}))
    elif looks or broken:
        click.echo("\n".join(table(looks, [job for _, job in broken])))
        for job, parcels in waiting.items():
            click.echo(f"{safe(job, 40)}: {count(parcels, 'parcel')} of results wait for: trotline write")
        for _, job in broken:
            click.echo(safe(in_a_line(job), _LINE))
    else:
        click.echo("There is no such job. Start one with:  trotline start FILE")


def _is_of(job: str, spider: str | None) -> bool:
    """Of a job that cannot be read only the id names the spider."""
    return spider is None or spider_name(spider) in (job, job.rpartition("-")[0])


def _targets(
    targets: list[Target], spider: str | None, unfinished: bool = False, age: Seconds | None = None
) -> list[Target]:
    name = spider_name(spider) if spider else None
    targets = [target for target in targets if name in (None, target.job.spider, target.job.id)]
    if unfinished:
        targets = [target for target in targets if target.job.finished_at is None]
    if age is not None:
        before = time.time() - age
        targets = [target for target in targets if (target.job.ended_at or before) < before]
    return targets


async def _unwritten(targets: list[Target]) -> dict[str, int]:
    """Job -> parcels of its results that wait for a writer, if there are any."""
    found: dict[str, int] = {}
    for frontier in {target.frontier for target in targets}:
        found |= await unwritten(frontier)
    return {target.job.id: found[target.job.id] for target in targets if target.job.id in found}


def outlook(look: Look) -> Range | Unknown | None:
    """When it ends if it goes on as it did on the whole; None if it is not under way."""
    p = look.progress
    if p.finished_at is not None or p.state in (State.PAUSED, State.CANCELLED) or not p.leased or not look.alive:
        return None
    if reason := outage(look.held_back) or standstill(look.lanes, look.troubles, p.waiting):
        return reason
    lived = max(0.0, p.now - p.started_at)
    samples = (Sample(0.0, 0, p.admitted), Sample(lived, p.done + p.dead, p.admitted))
    return estimate(samples, p.waiting + p.leased, map(load_of, look.lanes), delays=delays_of(p))


def table(looks: list[Look], broken: Sequence[str] = ()) -> list[str]:
    rows: list[tuple[str, ...]] = [_HEAD]
    for look in looks:
        p, job, found = look.progress, look.target.job, outlook(look)
        numbers = (count(p.waiting), count(p.leased), count(p.done), count(p.dead))
        started = f"{length(max(0.0, p.now - p.started_at))} ago"
        ends = eta(found) if found is not None else ""
        rows.append((safe(job.id, 40), safe(job.spider, 30), state(p, alive=look.alive), *numbers, started, ends))
    rows += [(safe(job, 40), "", "cannot be read", *[""] * (len(_HEAD) - 3)) for job in broken]
    return [*columns(rows, right=(3, 4, 5, 6)), *held_back_lines(looks)]


def facts(look: Look) -> dict[str, Any]:
    p, job, found = look.progress, look.target.job, outlook(look)
    return {
        "job": job.id,
        "spider": job.spider,
        "frontier": public(look.target.frontier),
        "state": state(p, alive=look.alive),
        **task_counts(p),
        "started_at": iso(p.started_at),
        "finished_at": iso(p.finished_at) if p.finished_at is not None else None,
        "version": job.version,
        "versions": job.versions,
        "held_back": look.held_back,
        "eta": eta_facts(found) if found is not None else None,
    }

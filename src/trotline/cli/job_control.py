"""`trotline pause`, `resume`, `drain` and `cancel`: what an operator wants of a job, or of one lane of it."""

import shlex
from collections.abc import Callable
from typing import Any, TypeVar

import click

from trotline.cli.fleet_options import place_option, where
from trotline.cli.formatting import count, json_line, length, safe
from trotline.cli.job_argument import Target, console_of, find
from trotline.cli.options import examples, json_option, settings_of, wait_for
from trotline.commands.job_control import Steered, Verb, steer
from trotline.model.job import State

F = TypeVar("F", bound=Callable[..., Any])


def _arguments(command: F) -> F:
    command = json_option(place_option(command))
    command = click.option("--lane", metavar="LANE", help="Only this lane: a host, as `trotline watch` names it.")(
        command
    )
    return click.argument("job")(command)


@click.command(
    epilog=examples(
        "trotline pause shop                          the newest job of shop: workers stop within a second",
        "trotline pause shop --lane books.example     only this host; the others go on",
        "trotline resume shop                         go on",
    )
)
@_arguments
def pause(job: str, lane: str | None, frontier: str | None, as_json: bool) -> None:
    """Hand out no more tasks of a job, or of one of its lanes, to any worker.

    What is in flight ends as usual, and tasks can still be added. JOB is a spider's name, its file, or a job's id.
    """

    def said(_: Steered, target: Target) -> str:
        return f"paused; visits in flight end as usual. Resume: {_again('resume', target, lane, frontier)}"

    _steer(Verb.PAUSE, job, lane, frontier, said, json=as_json)


@click.command(
    epilog=examples(
        "trotline resume shop                         after pause, drain or cancel",
        "trotline resume shop --lane books.example    only this lane; if it rests after failures, it is probed now",
    )
)
@_arguments
def resume(job: str, lane: str | None, frontier: str | None, as_json: bool) -> None:
    """Go on with a job or a lane that was paused, drained or cancelled; or end the rest of a lane after failures.

    With --lane, a lane that rests and is not paused is probed now, by one visit: for all jobs of the frontier.
    Tasks of a lane that were buried by `cancel --lane` stay buried until they are revived:
    `trotline dead JOB --why cancelled --revive`. JOB is a spider's name, its file, or a job's id.
    """

    def said(done: Steered, target: Target) -> str:
        if lane is None and done.before is State.CANCELLED:
            # Its workers took the cancelling for the end.
            file = shlex.quote(f"{target.job.spider}.py")
            without = f" without its limit ({done.lifted})" if done.lifted else ""
            more = f"start more: trotline work {file}{where(frontier)}"
            return f"resumed{without}; waiting workers join it; {more}"
        after = f"{length(done.rest)} left, {safe(done.rest_why or 'after failures', 100)}"
        if done.rest_ended:
            return f"its rest ({after}) is over: one probe goes out now, and opens it if it is answered"
        if done.rest:
            return f"resumed; it rests ({after}). To end that: {_again('resume', target, lane, frontier)}"
        return "resumed"

    _steer(Verb.RESUME, job, lane, frontier, said, json=as_json)


@click.command(
    epilog=examples(
        "trotline drain shop                          visit what waits, follow no new link, then finish",
        "trotline drain shop --lane books.example     only this lane",
        "trotline resume shop                         admit new tasks again",
    )
)
@_arguments
def drain(job: str, lane: str | None, frontier: str | None, as_json: bool) -> None:
    """Finish what waits and admit nothing new: an orderly end before all is visited.

    Links that are found meanwhile are counted ("refused: draining") and not kept. JOB is a spider's name, its
    file, or a job's id.
    """

    def said(_: Steered, target: Target) -> str:
        undo = _again("resume", target, lane, frontier)
        return f"draining; what waits is visited, nothing new is admitted. Undo: {undo}"

    _steer(Verb.DRAIN, job, lane, frontier, said, json=as_json)


@click.command(
    epilog=examples(
        "trotline cancel shop                         its workers leave it; what waits is kept",
        "trotline cancel shop --lane books.example    bury what waits for this host; the others go on",
    )
)
@_arguments
def cancel(job: str, lane: str | None, frontier: str | None, as_json: bool) -> None:
    """End a job: its workers leave it within a second, and no row is lost.

    Waiting tasks are kept, so `trotline resume` can take it up again. With --lane what waits in the lane is
    buried ("cancelled"), and can be revived. JOB is a spider's name, its file, or a job's id.
    """

    def said(done: Steered, target: Target) -> str:
        if lane is None:
            return f"cancelled; what waits is kept. Resume: {_again('resume', target, None, frontier)}"
        undo = shlex.join(["trotline", "dead", target.name, "--why", "cancelled", "--revive"])
        return f"{count(done.buried, 'task')} buried. Undo: {undo}{where(frontier)}"

    _steer(Verb.CANCEL, job, lane, frontier, said, json=as_json)


_EVENTS = {Verb.PAUSE: "paused", Verb.RESUME: "resumed", Verb.DRAIN: "draining", Verb.CANCEL: "cancelled"}
_Said = Callable[[Steered, Target], str]


def _steer(verb: Verb, job: str, lane: str | None, frontier: str | None, said: _Said, *, json: bool) -> None:
    settings = settings_of(frontier=frontier)

    async def action() -> None:
        target = await find(settings, job)
        async with console_of(target) as console:
            done = await steer(console, target.job, verb, lane)
        if json:
            click.echo(json_line({"event": _EVENTS[verb], "job": target.job.id, "lane": lane}))
        else:
            click.echo(f"{target.job.id}{f', lane {safe(lane, 100)}' if lane else ''}: {said(done, target)}")
            if verb is Verb.PAUSE or (verb is Verb.CANCEL and lane is None):
                _warn_of_retention(target.frontier)

    wait_for(action())


def _warn_of_retention(frontier: str) -> None:
    from trotline.config.backends import keeps_for

    if (kept := keeps_for(frontier)) is not None:
        click.echo(
            f"warning: its broker deletes tasks that wait for more than {kept / 86_400:.0f} days; resume before that",
            err=True,
        )


def _again(verb: str, target: Target, lane: str | None, frontier: str | None) -> str:
    words = ["trotline", verb, target.name, *(["--lane", lane] if lane else [])]
    return shlex.join(words) + where(frontier)

"""`trotline pace`: the rate limit of a host over all jobs of a frontier; the operator's overrides theirs."""

import shlex
from collections.abc import Sequence

import click
import msgspec

from trotline.cli.fleet_options import place_option, where
from trotline.cli.formatting import columns, count, json_line, length, safe
from trotline.cli.job_argument import Target, console_of, jobs_here
from trotline.cli.options import examples, json_option, settings_of, wait_for
from trotline.commands.pace import chosen, wanted
from trotline.config.backend_urls import public
from trotline.errors import SettingsError
from trotline.model.job import LanePace
from trotline.model.pace import Pace
from trotline.model.proxy_pool import lane_of
from trotline.rules.pace import RETRY_DRIP


@click.command(
    epilog=examples(
        "trotline pace --host books.example                     how fast it is visited now, and why",
        "trotline pace --host books.example 2/s                 two pages a second, whatever the spiders say",
        "trotline pace --host books.example 30/m --concurrency 2",
        "trotline pace --host books.example --clear             the spiders' own paces again",
        "trotline pace --host books.example via home 1/s per proxy",
        "                                                       through the proxy pool home",
    )
)
@click.option(
    "--host", required=True, metavar="HOST", help="The lane, as `trotline watch` names it: HOST, or HOST via POOL."
)
@click.argument("words", nargs=-1, metavar="[via POOL] [RATE [per proxy]]")
@click.option("--concurrency", type=click.IntRange(1), metavar="N", help="Visits of the host at the same time.")
@click.option("--clear", is_flag=True, help="Remove the pace that was set.")
@place_option
@json_option
def pace(
    host: str, words: tuple[str, ...], concurrency: int | None, clear: bool, frontier: str | None, as_json: bool
) -> None:
    """Show or set how fast a host is visited, by all workers of all jobs of the frontier.

    RATE is like 2/s, 30/m or 500/h; "1/s per proxy" is that of each proxy of the pool. It holds for every job, also for
    those that come later, until it is cleared. Without it the slowest of the spiders' paces wins. A host that was
    slowed down by its answers starts again with it; its Retry-After and the Crawl-delay of its robots.txt are kept.
    """
    host, rate = lane_and_rate(host, words)
    asked = None if not rate else wanted(rate, host)
    if clear and asked is not None:
        raise SettingsError("--clear takes the pace back, and RATE sets one", hint="Give one of them.")
    if concurrency and asked is None:
        raise SettingsError(
            "--concurrency belongs to a pace", hint=f"For example: trotline pace --host {shlex.quote(host)} 2/s ..."
        )
    settings = settings_of(frontier=frontier)

    async def each() -> None:
        for target in _newest(await jobs_here(settings)):
            async with console_of(target) as console:
                if asked is not None:
                    lane = await console.lane_pace(host)
                    await console.set_pace(host, chosen(target.job, host, asked, concurrency, lane))
                elif clear:
                    await console.set_pace(host, None)
                _print(target, host, await console.lane_pace(host), frontier, json=as_json)

    wait_for(each())


def lane_and_rate(host: str, words: Sequence[str]) -> tuple[str, str]:
    """What was typed, with or without quotes: `--host shop.example via home 1/s per proxy`."""
    if words[:1] in (("via",), ["via"]):
        if len(words) < 2:
            raise SettingsError("via which proxy pool?", hint=f"For example: trotline pace --host {host} via home")
        host, words = lane_of(host, words[1]), words[2:]
    return host, " ".join(words)


def _newest(known: list[Target]) -> list[Target]:
    """One job of each frontier: all of them share its lanes."""
    if not known:
        raise SettingsError(
            "there is no job here yet",
            hint="Run a spider first (trotline run FILE), go to its folder, or name its place: --frontier URL",
        )
    return list({target.frontier: target for target in known}.values())


def _print(target: Target, host: str, lane: LanePace | None, frontier: str | None, *, json: bool) -> None:
    if json:
        found = {} if lane is None else msgspec.to_builtins(lane)
        click.echo(json_line({"event": "pace", "frontier": public(target.frontier), "lane": host, **found}))
        return
    place = "" if frontier else f" in {public(target.frontier)}"
    if lane is None:
        click.echo(f"{safe(host, 100)}{place}: never visited")
        return
    click.echo(f"{safe(host, 100)}{place}: {_interval(lane.interval)}, {count(lane.running, 'visit')} under way")
    click.echo("\n".join(columns(_reasons(lane, host, frontier))))


def _reasons(lane: LanePace, host: str, frontier: str | None) -> list[tuple[str, str]]:
    found = []
    if lane.ordered is not None:
        undo = f"trotline pace --host {shlex.quote(safe(host, 100))} --clear{where(frontier)}"
        found.append(("  operator", f"{_pace(lane.ordered)}, for every job. Remove it: {undo}"))
    found += [(f"  {job}", _pace(own)) for job, own in sorted(lane.jobs.items())]
    if lane.crawl_delay:
        found.append(("  robots.txt", f"Crawl-delay {lane.crawl_delay:g} s"))
    if lane.limit:
        found.append(("  the site", f"rate limited us; it seems to admit {_interval(lane.limit)}"))
    if lane.rests_for:
        found.append(("  rests", f"for {length(lane.rests_for)}: {lane.why}"))
    if lane.retry_credit is not None:
        found.append(("  retries", f"are capped, as most visits fail: {_cap(lane.retry_credit)}"))
    return found or [("  jobs", "none is using it now")]


def _cap(credit: float) -> str:
    """The retry budget (F16)."""
    share = f"a share of the first attempts, and one per {1 / RETRY_DRIP:.0f} s"
    return f"{share}; {int(credit)} may start now" if credit >= 1 else f"{share}; none may start now"


def _pace(own: Pace) -> str:
    per_proxy = " per proxy" if own.per_proxy else ""
    return f"{own.rate}{per_proxy}, at most {count(own.concurrency, 'visit')} at once"


def _interval(seconds: float) -> str:
    return f"{1 / seconds:.3g}/s" if seconds < 1 else f"a page every {seconds:.3g} s"

"""`trotline advise`: which limit binds a job, and what would change it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from trotline.cli.fleet_options import place_option
from trotline.cli.formatting import columns, count, json_line, length, rate, safe, safe_text
from trotline.cli.job_argument import find
from trotline.cli.options import examples, json_option, settings_of, sink_option, time_of, wait_for

if TYPE_CHECKING:
    from trotline.commands.advise import AdviceReport
    from trotline.rules.machine_comparison import Option

_RAISED = {True: "yes", False: "no", None: "unknown"}
_MOST_OPTIONS = 12


@click.command(
    epilog=examples(
        "trotline advise shop                             which limit binds, and what one more worker would give",
        "trotline advise shop --measure 30s               measured anew for half a minute",
        "trotline advise shop --prices prices.toml        with time and cost on other machines",
        "trotline advise shop --within 6h --json          is it done in six hours? For machines",
    )
)
@click.argument("job", required=False)
@click.option("--measure", metavar="TIME", help="Measure anew for this long, 10s or more.  [default: what is kept]")
@click.option(
    "--prices", type=click.Path(path_type=Path), metavar="FILE", help="A price table (TOML): compare machines."
)
@click.option("--within", metavar="TIME", help="How long the whole job may take: 6h.")
@place_option
@sink_option
@json_option
def command(
    job: str | None,
    measure: str | None,
    prices: Path | None,
    within: str | None,
    frontier: str | None,
    sink: str | None,
    as_json: bool,
) -> None:
    """Which limit binds a running job, how many workers are worth having, and up or out.

    JOB is a spider's name, its file, or a job's id; it can be left out where there are jobs of one spider only. Figures
    are those of the last minute, if a coordinator, a run or the web server keeps them; else they are measured now.
    """
    from trotline.commands.advise import AdvisePlan, report

    settings = settings_of(frontier=frontier, sink=sink)
    seconds = None if measure is None else time_of("--measure", measure)
    if seconds is not None and not 10.0 <= seconds <= 3600.0:
        raise click.UsageError("--measure: workers send figures every 5 s: give it 10s to 1h")
    table = None
    if prices is not None:
        from trotline.config.prices import read_prices

        table = read_prices(prices)
    target = wait_for(find(settings, job))
    plan = AdvisePlan(
        frontier=target.frontier,
        sink=settings.sink_of(target.job.spider),
        job=target.job,
        measure=seconds,
        prices=table,
        within=None if within is None else time_of("--within", within),
        proxies=settings.proxies,
    )
    found = wait_for(report(plan))
    for line in [json_line(facts(found))] if as_json else text(found):
        click.echo(line)


def facts(found: "AdviceReport") -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(found)
    return built


def text(found: "AdviceReport") -> list[str]:
    advice = found.advice
    lines = [f"{safe(found.job)}: {safe_text(advice.sentence)}"]
    if advice.wanted_workers is not None and advice.workers:
        lines.append(f"workers worth having: {count(advice.wanted_workers)} (running: {count(advice.workers)})")
    if advice.limits:
        rows = [("limit", "allows", "")]
        rows += [
            (each.name, "unknown" if each.per_second is None else rate(each.per_second), safe_text(each.text, 200))
            for each in advice.limits
        ]
        lines += ["", *columns(rows, right={1})]
    if found.measured is not None:
        m = found.measured
        lines += [
            "",
            f"measured for {length(m.seconds)}: {rate(m.pages_per_second)}, {length(m.seconds_per_page)} per page, "
            f"{m.busy:.0%} of {count(m.slots, 'slot')} in visits, {m.idle:.0%} without a task that may start, "
            f"{m.waits['sink']:.0%} held back by the {'archive' if m.archives_longest else 'sink'}, "
            f"{m.waits['frontier']:.0%} by the frontier",
        ]
    raised = [(each.name, _RAISED[each.raised], each.found, each.meaning) for each in found.signals]
    lines += ["", *columns([("signal", "", "measured", "what helps"), *raised])]
    if found.options:
        lines += ["", *_options(found)]
    lines += ["", "before other machines can take part:"]
    lines += [f"  {line}" for line in columns([(each.what, safe(each.now, 200), each.then) for each in found.moves])]
    return lines


def _options(found: "AdviceReport") -> list[str]:
    head = ("machines", "workers", "pages/s", "next limit", "hours", found.currency, "spot", "")
    rows = [head, *(_option(each) for each in found.options[:_MOST_OPTIONS])]
    more = len(found.options) - _MOST_OPTIONS
    note = f"{count(found.remaining, 'task')} known now; pages may lead to more. Prices as of {safe(found.as_of, 40)}."
    lines = [*columns(rows, right={1, 2, 4, 5, 6}), note]
    return [*lines, f"{count(more, 'option')} more: --json"] if more > 0 else lines


def _option(each: "Option") -> tuple[str, ...]:
    return (
        f"{each.number} x {safe(each.machine, 60)}",
        count(each.workers),
        f"{each.pages_per_second:,.1f}",
        each.limit,
        "unknown" if each.hours is None else f"{each.hours:,.2f}",
        "unknown" if each.cost is None else f"{each.cost:,.2f}",
        "-" if each.spot_cost is None else f"{each.spot_cost:,.2f}",
        "needs servers" if each.needs_servers else "",
    )

"""`trotline proxies simulate`: policies against a described site, in virtual time."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from trotline.cli.formatting import columns, count, json_line, length
from trotline.cli.options import examples, json_option
from trotline.errors import SettingsError

if TYPE_CHECKING:
    from trotline.rules.proxy_simulation import Course, Scenario

PRESETS = ("seed-3x10", "seed-10x50", "seed-20x100")
"""As in rules/proxy_simulation.py, which --help need not import."""
_MOST_MINUTES = 24 * 60


@click.command(
    epilog=examples(
        "trotline proxies simulate --preset seed-10x50 --plot policies.html",
        "trotline proxies simulate shop.toml --seed 2 --json",
    ),
    short_help="Compare policies against a described site.",
)
@click.argument("file", required=False, metavar="[FILE.toml]")
@click.option("--preset", type=click.Choice(PRESETS), help="A scenario instead of a file: workers x proxies.")
@click.option(
    "--seed", type=click.IntRange(0), metavar="N", help="Of the random numbers: the same seed, the same result."
)
@click.option("--minutes", type=click.IntRange(1, _MOST_MINUTES), metavar="N", help="Simulated time.  [default: 60]")
@click.option("--plot", metavar="FILE", help="Write diagrams over time to this .svg or .html file.")
@json_option
def simulate(
    file: str | None, preset: str | None, seed: int | None, minutes: int | None, plot: str | None, as_json: bool
) -> None:
    """Compare policies for proxies against a described site. No request is sent, and no time passes.

    The file describes the fleet, the proxies and the site (docs/explain/proxy-policy.md). Trotline's ring runs with the
    code of the frontier, beside what other tools do: a quarantine in each process, the same with a delay multiplied by
    the number of workers, and round robin without quarantine.
    """
    from trotline.commands.proxies_simulate import compare

    if (file is None) == (preset is None):
        raise SettingsError("which scenario?", hint="Give a file, or one of: " + ", ".join(PRESETS))
    if plot is not None and Path(plot).suffix not in (".svg", ".html"):
        raise SettingsError(f"--plot {plot}: the file's name must end in .svg or .html", hint="--plot policies.html")
    scenario = _scenario(file, preset)
    scenario = msgspec.structs.replace(
        scenario,
        seed=scenario.seed if seed is None else seed,
        minutes=scenario.minutes if minutes is None else minutes,
    )
    live = sys.stderr.isatty() and not as_json
    courses = compare(
        scenario, lambda policy: click.echo(f"\r\033[Ksimulated: {policy}", err=True, nl=False) if live else None
    )
    if live:
        click.echo("\r\033[K", err=True, nl=False)
    if as_json:
        for course in courses:
            click.echo(json_line(_facts(course)))
    else:
        click.echo(_title(scenario))
        click.echo("\n".join(columns(_table(courses), right=range(1, 7))))
        click.echo(f"The site gives these proxies at most {scenario.ceiling:,.0f} good pages a minute.")
    if plot is not None:
        _draw(courses, Path(plot))
        if not as_json:
            click.echo(f"diagrams: {plot}")


def _scenario(file: str | None, preset: str | None) -> "Scenario":
    if file is not None:
        from trotline.config.proxy_scenario import read

        return read(file)
    from trotline.rules.proxy_simulation import PRESETS as KNOWN

    return KNOWN[preset or ""]


def _title(scenario: "Scenario") -> str:
    site = scenario.site
    return (
        f"{count(scenario.workers, 'worker')} x {count(scenario.slots, 'slot')}, {scenario.proxies:,} proxies,"
        f" a request every {length(scenario.interval)} through each;\n"
        f"the site allows {site.limit:g}/min per address, and bans for {length(site.ban)};"
        f" {count(scenario.minutes, 'minute')}, seed {scenario.seed}"
    )


def _table(courses: "list[Course]") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("policy", "good/min", "of most", "bans", "refused", "failed", "cost/1,000")]
    for course in courses:
        most = course.scenario.ceiling
        share = f"{course.good_per_minute / most:.0%}" if most else ""
        cost = course.cost_per_thousand
        failed = course.total("dead") + course.total("captive")
        rows.append(
            (
                course.policy,
                f"{course.good_per_minute:,.1f}",
                share,
                count(course.total("bans")),
                count(course.total("refused")),
                count(failed),
                "" if cost is None else f"{cost:.3g}",
            )
        )
    return rows


def _facts(course: "Course") -> dict[str, object]:
    sums = {name: course.total(name) for name in ("good", "throttled", "banned", "dead", "captive", "bans", "requests")}
    return {
        "event": "simulated",
        "policy": course.policy,
        "seed": course.scenario.seed,
        "minutes": len(course.minutes),
        "good_per_minute": course.good_per_minute,
        "most_per_minute": course.scenario.ceiling,
        **sums,
        "cost_per_thousand": course.cost_per_thousand,
        "by_minute": course.minutes,
    }


def _draw(courses: "list[Course]", path: Path) -> None:
    from trotline.commands.proxies_simulate import html, svg

    text = svg(courses) if path.suffix == ".svg" else html(courses, _title(courses[0].scenario), _table(courses))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written: {error.strerror}", hint="Give another file: --plot FILE"
        ) from error

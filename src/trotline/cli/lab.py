"""`trotline lab`: measure a spider on this machine, and write a report."""

from pathlib import Path
from typing import Any

import click

from trotline.cli.formatting import safe_text
from trotline.cli.lab_report import best, html, markdown, sentences
from trotline.cli.options import (
    allow_option,
    bandwidth_option,
    examples,
    known_pools,
    proxies_option,
    settings_of,
    time_of,
    wait_for,
)
from trotline.config.settings import file_name
from trotline.errors import SettingsError
from trotline.processes.open_file_limit import check_descriptors

NOTHING_MEASURED = 4
_MINUTES = click.FloatRange(0.5, 24 * 60)


@click.command(
    epilog=examples(
        "trotline lab shop.py                                ten minutes, then a report in this folder",
        "trotline lab shop.py --minutes 3 --prices prices.toml",
        "trotline lab shop.py --within 6h --out reports",
    )
)
@click.argument("spider")
@click.option("--minutes", type=_MINUTES, default=10.0, show_default=True, help="How long, in all.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FOLDER", help="Where the report goes.  [default: here]"
)
@click.option("--prices", type=click.Path(path_type=Path), metavar="FILE", help="Compare machines by this table.")
@click.option("--within", metavar="TIME", help="How long the whole job may take: 6h.")
@click.option("--memory", metavar="SIZE", help="What one process may use: 512MiB, 2GiB.  [default: 1GiB]")
@bandwidth_option
@click.option("--allow-private", is_flag=True, default=None, help="Visit private and loopback addresses too.")
@allow_option
@proxies_option
@click.option("--quiet", "-q", is_flag=True, help="Show nothing but errors.")
def command(
    spider: str,
    minutes: float,
    out: Path | None,
    prices: Path | None,
    within: str | None,
    quiet: bool,
    **flags: Any,
) -> int:
    """Measure a spider with changing numbers of processes and slots, as politely as it is written.

    Its pace, its proxies and robots.txt apply as always. Tasks and rows are kept in temporary files: its own jobs and
    records are not touched, and the pages are fetched for the measurement alone.
    """
    from trotline.commands.lab import LabPlan, lab
    from trotline.config.prices import read_prices
    from trotline.config.spider_loader import load
    from trotline.processes.host_limits import cpu_cores
    from trotline.rules.lab_plan import phases

    settings = settings_of(**flags)
    folder = out or Path()
    _make(folder)
    pools = known_pools(settings, quiet=quiet)
    found = load(spider, pools)
    chosen, each = phases(cpu_cores(), minutes * 60)
    check_descriptors(max(phase.processes for phase in chosen), max(phase.slots for phase in chosen))
    plan = LabPlan(
        ref=spider,
        settings=settings,
        phases=chosen,
        phase=each,
        prices=None if prices is None else read_prices(prices),
        within=None if within is None else time_of("--within", within),
        pools=pools,
    )
    result = wait_for(lab(plan, found, lambda text: None if quiet else click.echo(safe_text(text))))
    paths = [folder / f"lab-{file_name(found.name)}{ending}" for ending in (".md", ".html")]
    for path, text in zip(paths, (markdown(result), html(result)), strict=True):
        path.write_text(text, encoding="utf-8")
    if not quiet:
        for line in [*sentences(result), f"Report: {paths[0]} and {paths[1]}"]:
            click.echo(safe_text(line, 1000))
    return 0 if best(result.trials) is not None else NOTHING_MEASURED


def _make(folder: Path) -> None:
    """Before the measurement: ten minutes must not be lost to a report that has no place."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"--out {folder} is not a folder, and cannot be made: {error.strerror}", hint="Name another one."
        ) from error

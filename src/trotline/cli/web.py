"""`trotline web`: the dashboard and the JSON API."""

from collections.abc import Coroutine
from typing import Any

import click

from trotline.cli.fleet_options import place_option
from trotline.cli.options import examples, pool_book, proxies_option, settings_of, sink_option, wait_for
from trotline.commands.web import LISTEN, WebPlan, address, checked, proxy_networks, token
from trotline.errors import SettingsError


@click.command(
    epilog=examples(
        "trotline web                                        the jobs of this folder, on http://127.0.0.1:8321/",
        "trotline web shop.py --frontier redis://queue:6379/0",
        "                                                    those of a fleet; jobs of shop can be created",
        "trotline web --listen 0.0.0.0:8321 --host-name crawl.example --token-operate file:token",
        "                                                    for other machines; put TLS in front of it",
    )
)
@click.argument("spiders", nargs=-1, metavar="[SPIDER]...")
@click.option("--listen", default=LISTEN, show_default=True, metavar="ADDRESS:PORT", help="Where to listen.")
@click.option("--token-view", metavar="REF", help="The token that may look: file:PATH or env:NAME.")
@click.option("--token-operate", metavar="REF", help="The token that may change things: file:PATH or env:NAME.")
@click.option("--host-name", "host_names", multiple=True, metavar="NAME", help="It may be asked under this name, too.")
@click.option(
    "--trust-proxy",
    "trust_proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A reverse proxy (or a network): its X-Forwarded-For says who asks.",
)
@place_option
@sink_option
@proxies_option
@click.option(
    "--end-with-stdin",
    is_flag=True,
    help="End when standard input is closed. For programs: if the port is taken, any free one is used.",
)
def command(
    spiders: tuple[str, ...],
    listen: str,
    token_view: str | None,
    token_operate: str | None,
    host_names: tuple[str, ...],
    trust_proxies: tuple[str, ...],
    frontier: str | None,
    sink: str | None,
    proxies: str | None,
    end_with_stdin: bool,
) -> None:
    """Show jobs, workers, records and the graveyard in a browser, and serve the JSON API under /api/v1.

    SPIDER is the file of a spider (shop.py): it is needed to create jobs and to add tasks. On a loopback address
    without a token every user of this machine is operator; any other address needs one. Ctrl-C ends it.
    """
    settings = settings_of(frontier=frontier, sink=sink, proxies=proxies)
    host, port = address(listen)
    plan = checked(
        WebPlan(
            settings=settings,
            host=host,
            port=port,
            host_names=host_names,
            trust_proxies=proxy_networks(trust_proxies),
            view=token("--token-view", token_view),
            operate=token("--token-operate", token_operate),
            spiders=spiders,
            end_with_stdin=end_with_stdin,
            book=pool_book(settings) if settings.proxies else None,
        )
    )
    wait_for(_serving(plan))


def _serving(plan: WebPlan) -> Coroutine[Any, Any, None]:
    try:
        from trotline.web.serve import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("trotline"):
            raise
        raise SettingsError(
            f"the web server needs the package {error.name}, which is not installed here",
            hint="Install it, in your clone of Trotline: pip install '.[web]'",
        ) from error
    return serve(plan, lambda url: _print_ready(url, plan))


def _print_ready(url: str, plan: WebPlan) -> None:
    click.echo(f"listening on {url}   (Ctrl-C ends it)")
    if plan.is_open:
        click.echo("note: there is no token: every user of this machine may change things", err=True)
    elif plan.operate is None:
        click.echo("note: there is no --token-operate: nothing can be changed here", err=True)

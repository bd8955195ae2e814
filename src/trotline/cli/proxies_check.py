"""`trotline proxies check`: try every proxy of a file."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from trotline.cli.formatting import columns, count, json_line, length, safe, safe_text
from trotline.cli.main import FINISHED, FINISHED_WITH_DEAD, INTERRUPTED
from trotline.cli.options import (
    allow_option,
    examples,
    json_option,
    pool_book,
    proxies_option,
    settings_of,
    time_of,
    wait_for,
)
from trotline.errors import SettingsError
from trotline.model.proxy_pool import NO_PROXY, is_account_pool
from trotline.rules import redaction
from trotline.rules.pool_names import listed

if TYPE_CHECKING:
    from trotline.commands.proxies_check import Checked
    from trotline.config.proxy_pools import PoolBook

_NAMED = 20
"""Failed proxies that are named with their reason; --json names all."""
_REASON = 200
_CLEAR = "\r\033[K"
"""The line of the terminal."""


@click.command(
    epilog=examples(
        "trotline proxies check --proxies proxies.toml --target https://shop.example/",
        "trotline proxies check home --echo https://echo.example/ip --direct",
    ),
    short_help="Try every proxy of a file.",
)
@click.argument("pool", required=False)
@click.option("--target", metavar="URL", help="Open a tunnel to this site, with TLS for https. No request is sent.")
@click.option("--echo", metavar="URL", help="Ask this page, which answers with the client's address.")
@click.option("--direct", is_flag=True, help="Ask the echo page without a proxy too. It sees your own address.")
@click.option("--concurrency", default=16, show_default=True, type=click.IntRange(1, 512), help="Proxies at once.")
@click.option("--timeout", default="10s", show_default=True, metavar="TIME", help="Of each try.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N of each pool.")
@proxies_option
@allow_option
@click.option("--allow-private", is_flag=True, default=None, help="Private and loopback addresses are fine.")
@json_option
def check(
    pool: str | None,
    target: str | None,
    echo: str | None,
    direct: bool,
    concurrency: int,
    timeout: str,
    limit: int | None,
    proxies: str | None,
    allow: tuple[str, ...],
    allow_private: bool | None,
    as_json: bool,
) -> int:
    """Try each proxy of the file three times, with its login. It works if two tries are answered.

    \b
    --target URL  only the handshake: does it open a tunnel (CONNECT or SOCKS5)
                  to this site? Use a site that you want to visit. Latency is
                  the time of the handshake.
    --echo URL    also fetches a page that answers with the client's address,
                  as text or as JSON ({"ip": ...} or {"origin": ..., "headers":
                  {...}}): shows the exit address, the region if the page names
                  one, and how anonymous the proxy is. Latency is the time of
                  the whole answer.

    There is no default page: Trotline sends requests only to servers that you name. Anonymity needs --direct and a page
    that shows the headers: transparent (the site sees your own address), anonymous (it sees that there is a proxy),
    elite (neither). Through an https page a proxy cannot add headers.

    The exit code is 3 if a proxy failed.
    """
    from trotline.commands.proxies_check import CheckPlan, number
    from trotline.commands.proxies_check import check as run

    for option, url in (("--target", target), ("--echo", echo)):
        _refuse_url(option, url)
    if (target is None) == (echo is None):
        raise SettingsError("no page to try the proxies with", hint="Give one of --target URL and --echo URL.")
    settings = settings_of(proxies=proxies, allow=allow, allow_private=allow_private)
    if not settings.proxies:
        raise SettingsError("no proxies are set", hint="Give the file with them: --proxies proxies.toml")
    book = pool_book(settings, quiet=as_json)
    plan = CheckPlan(
        pools=pools_to_check(book, pool, quiet=as_json),
        echo=echo or "",
        target=target or "",
        direct=direct,
        at_once=concurrency,
        timeout=_time(timeout),
        most=limit,
        allow_private=settings.allow_private,
        allow=settings.allow,
    )
    results: list[Checked] = []
    show = _progress(results, number(book, plan), as_json)
    try:
        wait_for(run(book, plan, show))
    except KeyboardInterrupt:
        if sys.stderr.isatty() and not as_json:
            click.echo(_CLEAR, err=True, nl=False)
        _print(results, number(book, plan), as_json)
        click.echo("interrupted", err=True)
        return INTERRUPTED
    _print(results, number(book, plan), as_json)
    return FINISHED_WITH_DEAD if any(each.why for each in results) else FINISHED


def pools_to_check(book: "PoolBook", pool: str | None, *, quiet: bool) -> tuple[str, ...]:
    """Accounts are not tried: that would be a login. Of an account pool that is named, its proxies are."""
    if pool is not None:
        book.pool(pool)
        proxies = book.proxies_of(pool)
        if proxies == NO_PROXY:
            raise SettingsError(f"{pool} goes out directly: it has no proxies to try", hint="Name a pool of proxies.")
        if proxies and not quiet:
            click.echo(f"note: accounts are not tried; these are the proxies of {pool}: pool {proxies}", err=True)
        return (proxies or pool,)
    accounts = [name for name in book.names if is_account_pool(name)]
    if not book.proxy_names:
        raise SettingsError("the file has accounts, and no proxies to try", hint="Give a file with [pools.NAME].")
    if accounts and not quiet:
        click.echo(f"note: accounts are not tried, only proxies: without {listed(accounts)}", err=True)
    return book.proxy_names


def _time(text: str) -> float:
    found = time_of("--timeout", text)
    if not 0 < found <= 600:
        raise click.UsageError("--timeout: must be above 0 and at most 10 minutes")
    return found


def _refuse_url(option: str, url: str | None) -> None:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or not url.isprintable() or parts.username is not None:
        raise SettingsError(
            f"{option} {redaction.url(url)} is not an http:// or https:// URL without a login",
            hint=f"For example: {option} https://shop.example/",
        )


def _progress(results: "list[Checked]", total: int, as_json: bool) -> "Callable[[Checked], None]":
    live = sys.stderr.isatty() and not as_json

    def show(checked: "Checked") -> None:
        results.append(checked)
        if as_json:
            click.echo(json_line(_facts(checked)))
        elif live:
            click.echo(f"\rchecked {count(len(results))} of {count(total)}", err=True, nl=False)
            if len(results) == total:
                click.echo(_CLEAR, err=True, nl=False)

    return show


def _facts(checked: "Checked") -> dict[str, Any]:
    from trotline.model.proxy_pool import hex_id

    facts = {name: getattr(checked, name) for name in checked.__struct_fields__}
    facts |= {"member": hex_id(checked.member), "why": safe_text(checked.why, _REASON), "ok": not checked.why}
    return {"event": "checked", **facts}


def _print(results: "list[Checked]", total: int, as_json: bool) -> None:
    results = sorted(results, key=lambda each: (each.pool, each.proxy, each.member))
    failed = [each for each in results if each.why]
    if as_json:
        return
    several = len({each.pool for each in results}) > 1
    echoed = any(each.exits for each in results)
    if works := [each for each in results if not each.why]:
        heads = ("pool", "proxy", "protocol", "tls", "tries", "latency", "exit", "anonymity", "region")
        rows = [heads, *map(_row, works)]
        kept = [place for place, name in enumerate(heads) if _shown(name, several, echoed)]
        rows = [tuple(row[place] for place in kept) for row in rows]
        click.echo("\n".join(columns(rows, right=(kept.index(5),))))
    for each in failed[:_NAMED]:
        click.echo(f"failed  {f'{each.pool}  ' if several else ''}{each.proxy}: {safe_text(_why(each), _REASON)}")
    if len(failed) > _NAMED:
        click.echo(f"failed  {count(len(failed) - _NAMED)} more; all of them: --json")
    left = f"; {count(total - len(results))} not checked" if len(results) < total else ""
    click.echo(f"{count(len(works))} of {count(len(results))} work{left}")


def _shown(name: str, several: bool, echoed: bool) -> bool:
    if name == "pool":
        return several
    return echoed or name not in ("exit", "anonymity", "region")


def _row(each: "Checked") -> tuple[str, ...]:
    more = f" +{len(each.exits) - 1}" if len(each.exits) > 1 else ""
    return (
        each.pool,
        safe(each.proxy, 40),
        each.protocol,
        "yes" if each.tls else "no",
        f"{each.answers}/{each.tries}",
        length(each.latency) if each.latency is not None else "",
        f"{each.exits[0]}{more}" if each.exits else "",
        str(each.anonymity or ""),
        safe(each.region, 20),
    )


def _why(each: "Checked") -> str:
    """The messages of the fetcher name the proxy; here the line begins with it."""
    return each.why.removeprefix(f"proxy {each.proxy}: ")

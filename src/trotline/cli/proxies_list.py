"""`trotline proxies list`: the fleet's shared view of its proxy pools."""

from typing import TYPE_CHECKING, Any

import click

from trotline.cli.fleet_options import place_option
from trotline.cli.formatting import columns, count, json_line, length, safe, safe_text
from trotline.cli.job_argument import frontiers
from trotline.cli.options import examples, json_option, pool_book, proxies_option, settings_of, wait_for
from trotline.cli.pool_view import use_words
from trotline.config.backend_urls import public
from trotline.errors import SettingsError
from trotline.model.proxy_pool import ACCOUNT, NO_PROXY, hex_id, is_account_pool, without_pool
from trotline.rules.pool_names import account_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trotline.commands.pool_history import PoolHistory
    from trotline.commands.proxies_list import MemberNames, PoolState
    from trotline.config.proxy_pools import PoolBook
    from trotline.config.settings import Settings
    from trotline.model.proxy_pool import MemberView

_NAMED = 5
"""Members in one line."""
_SITE_BLOCKS = "the site blocks us: it is probed"


@click.command(
    "list",
    epilog=examples(
        "trotline proxies list --proxies proxies.toml    with host:port and region",
        "trotline proxies list --pool home --lane shop.example",
        "trotline proxies list --pool home --lane shop.example --release",
        "trotline proxies list --pool @buyers --lane shop.example --proxies FILE \\",
        "                      --release --member cleo",
    ),
    short_help="Show which proxies are free, banned or down.",
)
@click.option("--pool", metavar="NAME", help="Only this pool.")
@click.option("--lane", metavar="HOST", help="The members in one lane: HOST with --pool, or 'HOST via POOL'.")
@click.option("--release", "to_release", is_flag=True, help="End the quarantines of the lane.")
@click.option("--member", metavar="PROXY", help="Only of this one: host:port, account, or its id. With --release.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="How many lanes or members.")
@proxies_option
@place_option
@json_option
def show(
    pool: str | None,
    lane: str | None,
    to_release: bool,
    member: str | None,
    limit: int,
    proxies: str | None,
    frontier: str | None,
    as_json: bool,
) -> None:
    """Show the pools of a fleet: for each host how many proxies or accounts are free, in use, resting or banned.

    What is shown is kept in the frontier, so it is the same from every machine. The frontier knows ids only: with
    --proxies FILE (the workers' file) they are shown as host:port, and accounts by their name. End the rest of an
    account after its password was corrected with --release.
    """
    from trotline.commands.pool_history import history
    from trotline.commands.proxies_list import MemberNames, place_of, refuse_unknown

    if (to_release and lane is None) or (member is not None and not to_release):
        raise click.UsageError("--release needs --lane, and --member needs --release")
    pool, lane = place_of(pool, lane)
    settings = settings_of(frontier=frontier, proxies=proxies)
    book, unreadable = _book(settings, quiet=as_json)
    names = MemberNames(book)
    places = frontiers(settings)
    if not places:
        raise SettingsError(
            "there is no frontier here yet", hint="Run a spider first, go to its folder, or name it: --frontier URL"
        )
    states = wait_for(_survey(places, pool))
    histories = {place: wait_for(history(place)) for place, found in states if found and not to_release}
    if unreadable is not None:
        if not any(found for _, found in states):
            raise unreadable
        click.echo(f"warning: {safe_text(unreadable.what)}: members are shown by their ids", err=True)
    if pool is not None and not any(found for _, found in states):
        wait_for(refuse_unknown(pool, places, book))
    for place, found in states:
        if found and lane is None and not as_json:
            click.echo(f"pools of {public(place)}")
            for host, trouble in histories[place].troubles.items():
                click.echo(f"workers on {safe(host, 60)}: {safe_text(trouble, 400)}")
        for state in found:
            if lane is not None:
                faults = {} if to_release else histories[place].faults
                _lane(place, state, lane, names, (to_release, member), limit, as_json, faults)
            elif as_json:
                _print_json(place, state, names, book, histories[place])
            else:
                _print(state, names, book, limit, histories[place])
    if lane is None and not as_json:
        _print_unregistered(states, book, pool)


def _book(settings: "Settings", *, quiet: bool) -> "tuple[PoolBook, SettingsError | None]":
    """Without its file, which only has the names: what the fleet shares is in the frontier."""
    from trotline.config.proxy_pools import load

    try:
        return pool_book(settings, quiet=quiet), None
    except SettingsError as error:
        return load(""), error


async def _survey(places: list[str], pool: str | None) -> "list[tuple[str, list[PoolState]]]":
    from trotline.commands.proxies_list import survey

    return [(place, await survey(place, pool)) for place in places]


def _print(state: "PoolState", names: "MemberNames", book: "PoolBook", limit: int, history: "PoolHistory") -> None:
    name = state.pool.name
    click.echo(f"{safe(name, 65)}: {count(state.pool.members, _noun(name))}{_about(name, book)}")
    if state.lanes:
        rows: list[tuple[str, ...]] = [("  host", "members", "free", "in use", "resting", "banned", "first back")]
        for lane in state.lanes[:limit]:
            free = max(0, lane.members - lane.in_flight - lane.resting)
            note = _SITE_BLOCKS if lane.site_blocked else length(lane.first_back) if lane.first_back > 0 else ""
            numbers = (lane.members, free, lane.in_flight, lane.resting, lane.banned)
            rows.append((f"  {safe(_host(lane.lane), 30)}", *map(count, numbers), note))
        click.echo("\n".join(columns(rows, right=(1, 2, 3, 4, 5))))
        if len(state.lanes) > limit:
            click.echo(f"  and {count(len(state.lanes) - limit, 'host')} more (--limit N)")
    elif (last := history.last.get(name)) is not None:
        click.echo(f"  no host is visited through it now; {safe(last.job, 60)}: {use_words(last.use)}")
    else:
        click.echo("  no host was visited through it yet")
    for each in state.down[:_NAMED]:
        who = safe(names.name(name, each.member), 60)
        faults = f"{count(each.faults, 'fault')} in a row, back in {length(each.until)}"
        why = _why(each.member, history.faults)
        click.echo(f"  down for all hosts: {who}: {faults}" + (f": {why}" if why else ""))
    if len(state.down) > _NAMED:
        click.echo(f"  down for all hosts: {len(state.down) - _NAMED:,} more")


def _host(lane: str) -> str:
    """`shop.example`; `shop.example as anna` if only this account visits it."""
    account = account_of(lane).rpartition(ACCOUNT)[2]
    return f"{without_pool(lane)} as {account}" if account else without_pool(lane)


def _noun(pool: str) -> str:
    return "account" if is_account_pool(pool) else "member"


def _key(pool: str) -> str:
    return "account" if is_account_pool(pool) else "proxy"


def _about(name: str, book: "PoolBook") -> str:
    if name not in book.names:
        return ""
    info = book.info(name)
    if info is None:
        proxies = book.proxies_of(name)
        return " (direct)" if proxies == NO_PROXY else f" (proxies of {safe(proxies, 64)})"
    words = [str(info.kind), *(f"{key} {value}" for key, value in _details(info) if value)]
    return f" ({safe(', '.join(words), 100)})"


def _details(info: Any) -> tuple[tuple[str, str], ...]:
    return ("provider", info.provider), ("region", info.region)


def _print_unregistered(states: "list[tuple[str, list[PoolState]]]", book: "PoolBook", pool: str | None) -> None:
    known = {state.pool.name for _, found in states for state in found}
    missing = [name for name in book.names if name not in known and pool in (None, name)]
    for name in missing:
        size = count(len(book.pool(name).members), _noun(name))
        click.echo(f"{name}: {size}{_about(name, book)}; no worker uses it yet")
    if not known and not missing:
        click.echo("No worker of this frontier uses proxy pools. Set some:  trotline work SPIDER --proxies FILE")


def _print_json(place: str, state: "PoolState", names: "MemberNames", book: "PoolBook", history: "PoolHistory") -> None:
    name = state.pool.name
    info = book.info(name) if name in book.names else None
    about = {"kind": str(info.kind), **dict(_details(info))} if info is not None else {}
    if is_account_pool(name):
        about = {"kind": "accounts", **({"proxies": proxies} if (proxies := book.proxies_of(name)) else {})}
    head = {"event": "pool", "frontier": public(place), "pool": name, "members": state.pool.members}
    last = history.last.get(name)
    click.echo(json_line({**head, "version": state.pool.version, **about, "last_use": last}))
    for lane in state.lanes:
        facts = {key: getattr(lane, key) for key in lane.__struct_fields__}
        click.echo(json_line({"event": "lane", "pool": name, **facts}))
    for each in state.down:
        who = {"member": hex_id(each.member), _key(name): names.public(name, each.member) or None}
        facts = {"faults": each.faults, "back_in": each.until, "why": _why(each.member, history.faults)}
        click.echo(json_line({"event": "down", "pool": name, **who, **facts}))


def _lane(
    place: str,
    state: "PoolState",
    lane: str,
    names: "MemberNames",
    wanted: tuple[bool, str | None],
    limit: int,
    as_json: bool,
    faults: "Mapping[str, str]",
) -> None:
    from trotline.commands.proxies_list import members, release

    pool = state.pool.name
    known = wait_for(members(place, pool, lane))
    to_release, typed = wanted
    if to_release:
        member = None if typed is None else names.member(pool, typed, [each.member for each in known])
        number = wait_for(release(place, pool, lane, member))
        if as_json:
            click.echo(json_line({"event": "released", "pool": pool, "lane": lane, "count": number}))
        else:
            click.echo(f"{safe(lane, 100)}: {count(number, 'quarantine')} ended")
        return
    if as_json:
        for each in known:
            click.echo(json_line({**_member_facts(pool, each, names), "why": _why(each.member, faults)}))
        return
    click.echo(f"{safe(lane, 100)}: {count(len(known))} of {count(state.pool.members, _noun(pool))} were used here")
    if known:
        rows = [(f"  {_key(pool)}", "quality", "strikes", "state")]
        rows += [
            (
                f"  {safe(names.name(pool, one.member), 60)}",
                f"{one.quality:.2f}",
                count(one.strikes),
                ": ".join(part for part in (_state(one), _why(one.member, faults)) if part),
            )
            for one in known[:limit]
        ]
        click.echo("\n".join(columns(rows, right=(1, 2))))
    if len(known) > limit:
        click.echo(f"  and {count(len(known) - limit, _noun(pool))} more (--limit N)")


def _why(member: int, faults: "Mapping[str, str]") -> str:
    """Its last fault, as long as it had no good visit since then."""
    return safe_text(faults.get(hex_id(member), ""), 120)


def _state(member: "MemberView") -> str:
    if member.in_flight:
        return "in use"
    if member.banned:
        return f"banned, back in {length(member.rests_for)}"
    return f"rests for {length(member.rests_for)}" if member.rests_for > 0 else "free"


def _member_facts(pool: str, one: "MemberView", names: "MemberNames") -> dict[str, Any]:
    facts = {key: getattr(one, key) for key in one.__struct_fields__}
    facts["member"] = hex_id(one.member)
    return {"event": "member", "pool": pool, **facts, _key(pool): names.public(pool, one.member) or None}

"""The result of `trotline proxies bench` on a screen and as JSON."""

import random
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import click

from trotline.cli.formatting import columns, count, json_line, length, safe, safe_text, size
from trotline.commands.proxies_list import MemberNames
from trotline.model.proxy_pool import hex_id
from trotline.rules import intervals, proxy_bench
from trotline.rules.proxy_bench import LEAST, LEAST_GOOD, LEAST_LATENCIES, MemberRow, Prices, Result, Row

if TYPE_CHECKING:
    from trotline.commands.proxies_bench import Bench, BenchPlan
    from trotline.config.pool_table import PoolInfo
    from trotline.config.proxy_pools import PoolBook

_SEED = 1
"""Of the bootstrap: the same measurement, the same interval."""
_REASONS = 3
_MEMBERS = 3
"""The best and the worst of a pool."""
_SHOWN = (Result.GOOD, Result.BLOCKED, Result.FAULT)


def table(run: "Bench", plan: "BenchPlan", book: "PoolBook") -> list[Row]:
    def prices(pool: str) -> Prices:
        info = _info(pool, book)
        return Prices(per_gb=info.cost_per_gb, per_request=info.cost_per_request)

    def chance() -> random.Random:
        return random.Random(_SEED)  # noqa: S311 - of a bootstrap

    return proxy_bench.rows(run.samples, prices, plan.sampled.__contains__, chance)


def show(rows: Sequence[Row], run: "Bench", plan: "BenchPlan", book: "PoolBook", as_json: bool) -> None:
    found, names = proxy_bench.members(run.samples), MemberNames(book)
    if as_json:
        _print_json(rows, found, run, book, names)
        return
    for pool in plan.members:
        mine = [row for row in rows if row.pool == pool]
        click.echo(_head(pool, plan, book))
        if mine:
            click.echo("\n".join(columns([_HEADS, *map(_row, mine)], right=range(1, len(_HEADS)))))
            _print_costs(mine, book)
            _print_notes(mine, plan)
            _print_members([each for each in found if each.pool == pool], names)
        else:
            click.echo("  nothing was measured")
        _print_left_out(pool, run)
    if rows:
        click.echo("In brackets: 95 % intervals. Latency: of good pages.")


def _info(pool: str, book: "PoolBook") -> "PoolInfo":
    info = book.info(pool)
    assert info is not None  # noqa: S101 - for the type checker: account pools are not measured
    return info


_HEADS = ("  host", "requests", "good", "blocked", "faults", "p50", "p95")


def _head(pool: str, plan: "BenchPlan", book: "PoolBook") -> str:
    info, asked = _info(pool, book), len(plan.members[pool])
    part = f"{count(asked)} of " if pool in plan.sampled else ""
    words = [f"{part}{count(len(book.pool(pool).members), 'member')}", str(info.kind)]
    words += [f"provider {info.provider}"] if info.provider else []
    return f"{safe(pool, 64)}: {safe(', '.join(words), 100)}"


def _row(row: Row) -> tuple[str, ...]:
    shares = ("", "", "") if row.shares is None else tuple(_share(row.shares[result]) for result in _SHOWN)
    times = (length(each) if each is not None else "" for each in (row.p50, row.p95))
    return (f"  {safe(row.host, 26)}", count(row.pages), *shares, *times)


def _share(share: proxy_bench.Share) -> str:
    return f"{share.value:.0%} ({share.low * 100:.0f}-{share.high * 100:.0f})"


def _print_costs(rows: Sequence[Row], book: "PoolBook") -> None:
    info = _info(rows[0].pool, book)
    priced = bool(info.cost_per_gb or info.cost_per_request)
    lines: list[tuple[str, ...]] = [("  host", "received", "per good page", "cost of 1,000 good pages")]
    for row in rows:
        per_page = size(round(row.bytes / row.good)) if row.good else ""
        lines.append((f"  {safe(row.host, 26)}", size(row.bytes), per_page, _cost(row) if priced else ""))
    if not priced:
        lines = [line[:3] for line in lines]
    click.echo("\n".join(columns(lines, right=(1, 2))))
    if not priced:
        click.echo("  no cost: the pool has no cost_per_gb and no cost_per_request")


def _cost(row: Row) -> str:
    if row.cost is None or row.cost_interval is None:
        return (
            f"too few good pages ({count(row.good)} of {LEAST_GOOD})" if row.shares is not None else "too few requests"
        )
    low, high = row.cost_interval
    return (
        f"{_money(row.cost)} ({_money(low)}-{_money(high)})"
        if high < inf
        else f"{_money(row.cost)} ({_money(low)} or more)"
    )


def _money(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _print_notes(rows: Sequence[Row], plan: "BenchPlan") -> None:
    for row in rows:
        host = safe(row.host, 40)
        if row.shares is None:
            few = row.pages < LEAST
            need = f"{LEAST} requests" if few else f"{intervals.LEAST_GROUPS} proxies (--limit)"
            have = count(row.pages) if few else count(row.members)
            click.echo(f"  {host}: too few for shares: {have} of at least {need}; {count(row.good)} were good")
        elif row.p95 is None and row.good:
            click.echo(f"  {host}: too few good pages for p95: {count(row.good)} of at least {LEAST_LATENCIES}")
        if row.requests > row.pages:
            click.echo(f"  {host}: {count(row.requests - row.pages, 'redirect')} followed")
        for result, why in row.reasons.items():
            named = "; ".join(
                f"{safe_text(text, 80)}: {count(number)}" for text, number in list(why.items())[:_REASONS]
            )
            more = f"; {count(len(why) - _REASONS, 'other reason')}" if len(why) > _REASONS else ""
            click.echo(f"  {host}: {result}: {named}{more}")


def _print_members(found: Sequence[MemberRow], names: MemberNames) -> None:
    if len(found) < 2:
        return
    number = min(_MEMBERS, len(found) // 2)
    rows: list[tuple[str, ...]] = [("  proxy", "requests", "good", "blocked", "faults", "p50")]
    for word, some in (("best", found[:number]), ("worst", found[-number:])):
        rows += [_member(word, each, names) for each in some]
    click.echo("\n".join(columns(rows, right=range(1, 6))))


def _member(word: str, each: MemberRow, names: MemberNames) -> tuple[str, ...]:
    numbers = (each.pages, each.good, each.blocked, each.faults)
    took = length(each.p50) if each.p50 is not None else ""
    return (f"  {word}: {safe(names.name(each.pool, each.member), 50)}", *map(count, numbers), took)


def _print_left_out(pool: str, run: "Bench") -> None:
    for (name, host, why), number in run.left_out.items():
        if name == pool:
            click.echo(f"  {safe(host, 40)}: {count(number, 'request')} not sent: {why}")


def _print_json(
    rows: Sequence[Row], found: Sequence[MemberRow], run: "Bench", book: "PoolBook", names: MemberNames
) -> None:
    for row in rows:
        facts: dict[str, Any] = {name: getattr(row, name) for name in row.__struct_fields__}
        if row.cost_interval is not None:
            low, high = row.cost_interval
            facts["cost_interval"] = (low, high if high < inf else None)
        facts["reasons"] = {
            result: {safe_text(text, 200): number for text, number in why.items()}
            for result, why in row.reasons.items()
        }
        facts["left_out"] = {
            why: number for (pool, host, why), number in run.left_out.items() if (pool, host) == (row.pool, row.host)
        }
        about = _info(row.pool, book)
        click.echo(json_line({"event": "row", "provider": about.provider, "kind": str(about.kind), **facts}))
    for each in found:
        facts = {name: getattr(each, name) for name in each.__struct_fields__}
        who = {"member": hex_id(each.member), "proxy": names.public(each.pool, each.member) or None}
        click.echo(json_line({"event": "member", **facts, **who}))

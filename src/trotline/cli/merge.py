"""`trotline merge`: records of one thing become one."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from trotline.cli.formatting import json_line
from trotline.cli.merge_view import RULE_OPTIONS, again, pairs_json, pairs_lines, portrait, progress, summary
from trotline.cli.options import examples, json_option, settings_of, sink_option, wait_for
from trotline.errors import SettingsError, SpiderRefused
from trotline.model.merge import CRITERIA, DEFAULT_CRITERIA, ReviewDecision

if TYPE_CHECKING:
    from trotline.commands.merge import MergePlan, MergeReport


_PAIRS = 20
_IGNORED = {"review": {"kinds"}, "show": {*RULE_OPTIONS, "kinds"}}
"""Action -> options without effect on it: it shows what the last merge gave."""


@click.command(
    epilog=examples(
        "trotline merge shop                           records of one thing become one, by the default rule",
        "trotline merge shop.py                        by the rule of the spider (@shop.merge)",
        "trotline merge shop --dry-run                 what it would give; nothing is stored",
        "trotline merge --sink postgresql://db/all --by ids,text --prefer price=newest --prefer title=longest",
        "trotline merge shop --review                  pairs for a person to decide",
        "trotline merge shop --same PAIR               they are one thing (or --different PAIR)",
        "trotline merge shop --show THING              its fields, and whose they are",
        "trotline merge shop --split THING             they are not one thing, now and in future",
    )
)
@click.argument("spider", required=False)
@sink_option
@click.option(
    "--by",
    metavar="LIST",
    help=f"What makes records one thing: {', '.join(CRITERIA)}.  [default: {','.join(DEFAULT_CRITERIA)}]",
)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only records of this kind.  [default: all]")
@click.option("--text", multiple=True, metavar="FIELD", help="Compare this field.  [default: title, name, ...]")
@click.option(
    "--prefer",
    multiple=True,
    metavar="FIELD=HOW",
    help='newest, longest, "most frequent", or site:A,B; FIELD may be *.  [default: *=newest]',
)
@click.option("--merge-from", type=float, metavar="X", help="Texts this similar are one thing.  [default: 0.8]")
@click.option("--review-from", type=float, metavar="X", help="Texts this similar are for review.  [default: 0.7]")
@click.option("--within-site", is_flag=True, help="Compare texts of one site, too.")
@click.option("--dry-run", is_flag=True, help="Say what it would give, and store nothing.")
@click.option("--review", is_flag=True, help="List pairs that a person has to decide.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help=f"Pairs of --review.  [default: {_PAIRS}]")
@click.option("--same", multiple=True, metavar="PAIR", help="These records of the review list are one thing.")
@click.option("--different", multiple=True, metavar="PAIR", help="These records are different things.")
@click.option("--show", metavar="THING", help="Show a thing and its sources.")
@click.option("--split", metavar="THING", help="Undo a merge: its sources are different things, also in future.")
@click.option("--source", metavar="SITE/KEY", help="With --split: take only this source out.")
@json_option
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(spider: str | None, sink: str | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Merge records of one thing, from several pages, sites or workers, into one.

    Reads the records of a sink, and keeps what it made of them beside them: in the table `things`, and in the views
    `merged` and (SQLite) `merged_KIND`. Records are never changed. It may be repeated, and be killed at any time: only
    records that are new or changed are read. SPIDER is a spider's name or file.
    """
    _one_action(given)
    decisions = _decisions(given)
    plan = _plan(spider, settings_of(sink=sink), given)
    if decisions or given["review"] or given["show"] or given["split"]:
        _need_things(plan, spider or "")
    if given["review"] or given["show"]:
        _look(plan, given, as_json, again(spider or "", *RULE_OPTIONS))
        return
    report = wait_for(_act(plan, given, decisions, _watching(quiet=quiet or as_json)))
    click.echo(json_line(report) if as_json else "\n".join(summary(report, plan, spider or "")))


def _one_action(given: dict[str, Any]) -> None:
    asked = [name for name in ("dry_run", "review", "show", "split") if given[name]]
    asked += ["same"] if given["same"] or given["different"] else []
    if len(asked) > 1:
        raise click.UsageError(f"--{asked[0].replace('_', '-')} and --{asked[1]} are two commands: give one of them.")
    if given["source"] and not given["split"]:
        raise click.UsageError("--source belongs to --split THING.")
    if given["limit"] and not given["review"]:
        raise click.UsageError("--limit belongs to --review.")
    for action in asked:
        if unused := sorted(name for name in _IGNORED.get(action, ()) if given[name]):
            option = unused[0].removesuffix("s").replace("_", "-")
            raise click.UsageError(f"--{option} has no effect on --{action}: leave it out.")


def _need_things(plan: "MergePlan", spider: str) -> None:
    """Before the first merge an empty list of pairs, or a thing that is not found, would mislead."""
    from trotline.commands.merge_decisions import is_unmerged

    if wait_for(is_unmerged(plan.sink)):
        raise SettingsError(f"nothing is merged here yet: {again(spider, *RULE_OPTIONS, 'kinds')}")


async def _act(
    plan: "MergePlan",
    given: dict[str, Any],
    decisions: list[ReviewDecision],
    on_step: "Callable[[MergeReport], None]",
) -> "MergeReport":
    from trotline.commands import merge, merge_decisions

    if given["dry_run"]:
        return await merge.dry_run(plan, on_step)
    if given["split"]:
        return await merge_decisions.split(plan, given["split"], given["source"] or "")
    if decisions:
        return await merge_decisions.decide(plan, decisions)
    return await merge.merge(plan, on_step)


def _look(plan: "MergePlan", given: dict[str, Any], as_json: bool, typed: str) -> None:
    from trotline.commands import merge_decisions

    if given["show"]:
        thing = wait_for(merge_decisions.show(plan.sink, given["show"]))
        click.echo(json_line(thing) if as_json else "\n".join(portrait(thing)))
        return
    limit = given["limit"] or _PAIRS
    pairs, of_this_rule = wait_for(merge_decisions.review(plan, limit))
    shown = pairs_json(pairs) if as_json else pairs_lines(pairs, plan, limit, typed if of_this_rule else "")
    click.echo("\n".join(shown))


def _decisions(given: dict[str, Any]) -> list[ReviewDecision]:
    """Each pair once, however its two ids are ordered."""
    from trotline.commands.merge_decisions import pair_name

    same = dict.fromkeys(_decision(text, True) for text in given["same"])
    different = dict.fromkeys(_decision(text, False) for text in given["different"])
    for one in same:
        if one._replace(same=False) in different:
            raise click.UsageError(f"--same and --different name the same pair, {pair_name(one.a, one.b)}: give one.")
    return [*same, *different]


def _decision(text: str, same: bool) -> ReviewDecision:
    from trotline.commands.merge_decisions import pair_of

    try:
        return ReviewDecision(*pair_of(text), same)
    except ValueError as error:
        listed = again(click.get_current_context().params["spider"] or "")
        raise click.UsageError(f"{error}. Copy it from the list: {listed} --review") from error


def _plan(spider: str | None, settings: Any, given: dict[str, Any]) -> "MergePlan":
    from trotline.commands.merge import MergePlan
    from trotline.spider.merging import merge_rule

    name, own = _named(spider)
    if not name and not settings.sink:
        raise SettingsError("whose records?", hint="Name a spider (trotline merge shop), or --sink URL.")
    changed = [name for name in RULE_OPTIONS if given[name]]
    if own is not None and changed:
        option = changed[0].replace("_", "-")
        raise SettingsError(
            f"{spider} has a merge rule of its own: --{option} would not be used",
            hint=f"Change it in the file, or name the spider without its file: {again(name)} --{option} ...",
        )
    place = settings.sink_of(name)
    kinds = tuple(given["kinds"])
    if own is not None:
        return MergePlan(sink=place, rule=own.rule, author=own.author, kinds=kinds)
    try:
        rule = merge_rule(
            "trotline merge",
            by=[one.strip() for one in given["by"].split(",")] if given["by"] else DEFAULT_CRITERIA,
            prefer=dict(_precedence(text) for text in given["prefer"]),
            text=given["text"],
            merge_from=given["merge_from"],
            review_from=given["review_from"],
            within_site=given["within_site"],
        )
    except SpiderRefused as error:
        raise SettingsError(error.what, hint=error.hint) from error
    return MergePlan(sink=place, rule=rule, kinds=kinds)


def _named(spider: str | None) -> tuple[str, Any]:
    """The spider's name, and its own rule if its file was named."""
    if spider is None:
        return "", None
    if spider.endswith(".py") or ":" in spider or "/" in spider:
        from trotline.config.spider_loader import load

        loaded = load(spider)
        return loaded.name, loaded.merging
    return spider, None


def _precedence(text: str) -> tuple[str, str]:
    field, equals, how = text.partition("=")
    if not equals or not field:
        raise click.UsageError(f"--prefer {text!r}: write FIELD=HOW, as in price=newest")
    return field, how.replace("-", " ") if how == "most-frequent" else how


def _watching(*, quiet: bool) -> "Callable[[MergeReport], None]":
    def show(report: "MergeReport") -> None:
        if not quiet:
            end = "\r" if sys.stderr.isatty() else "\n"
            click.echo(progress(report) + (" " * 10 if end == "\r" else ""), nl=end == "\n", err=True)
            if end == "\r":
                click.echo(end, nl=False, err=True)

    return show

"""What `trotline merge` prints."""

import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trotline.cli.formatting import count, json_line, safe, safe_url
from trotline.cli.suggested_commands import as_typed, same
from trotline.commands.merge_decisions import pair_name
from trotline.model.merge import Review, SourceView, ThingView
from trotline.rules.merge_score import MOST_OTHER_WORDS
from trotline.rules.merge_text import LONGEST_FIELD, LONGEST_TEXT

if TYPE_CHECKING:
    from trotline.commands.merge import MergePlan, MergeReport

RULE_OPTIONS = ("by", "text", "prefer", "merge_from", "review_from", "within_site")
"""What is one thing. A decision is refused without those of the merge."""
_LONGEST = 90
_MOST_UNDONE = 3
"""Decisions of one command for which the way back is shown."""


def progress(report: "MergeReport") -> str:
    speed = report.read / report.seconds if report.seconds else 0.0
    return f"{count(report.read, 'record')} read, {speed:,.0f}/s"


def again(spider: str, *options: str) -> str:
    """The command with its sink, as it has to be typed once more; and with these of its options."""
    command = same("merge", *([spider] if spider else []))
    return " ".join([command, *map(shlex.quote, as_typed(*options))])


def summary(report: "MergeReport", plan: "MergePlan", spider: str) -> list[str]:
    before, after = report.before, report.after
    lines = ["dry run: nothing was stored"] if report.dry_run else []
    lines.append(
        f"read       {count(report.read, 'new or changed record')}"
        + (f", {count(report.gone)} gone" if report.gone else "")
        + f" in {report.seconds:.1f} s"
    )
    lines.append(
        f"things     {count(after.things)}{_grown(before.things, after.things)}, of {count(after.sources, 'record')}"
    )
    lines.append(f"merged     {count(after.merged)}{_grown(before.merged, after.merged)} of several records")
    if after.review and report.dry_run:
        lines.append(f"review     {count(after.review, 'pair')} would be for review")
    elif after.review:
        lines.append(f"review     {count(after.review, 'pair')} to decide: {again(spider, *RULE_OPTIONS)} --review")
    for decision in report.decided[:_MOST_UNDONE]:
        other = "different" if decision.same else "same"
        lines.append(
            f"undo       {again(spider, *RULE_OPTIONS, 'kinds')} --{other} {pair_name(decision.a, decision.b)}"
        )
    if report.without_text and report.read:
        fields = ", ".join(plan.rule.text)
        lines.append(
            f"no text    {count(report.without_text, 'record')} without {safe(fields)}: compared by exact keys only;"
            " name their field with --text"
        )
    if report.cut_texts:
        lines.append(
            f"long       {count(report.cut_texts, 'record')} with texts of more than {LONGEST_FIELD:,} characters"
            f" ({LONGEST_TEXT:,} with the fields beside the name): only the beginning was compared"
        )
    if report.unlike:
        lines.append(
            f"unlike     {count(report.unlike, 'pair')} of texts with more than {MOST_OTHER_WORDS} other words on each"
            " side: their spellings were not compared"
        )
    if report.crowded:
        lines.append(
            f"crowded    {count(report.crowded, 'key')} not used, because more than {plan.rule.most:,} records (or"
            f" {plan.rule.most_alike:,} similar texts) share them"
        )
    return lines


def _grown(before: int, after: int) -> str:
    return f" ({after - before:+,})" if before and before != after else ""


def pairs_lines(pairs: Sequence[Review], plan: "MergePlan", limit: int, command: str) -> list[str]:
    """`command`: that of the merge; empty: it is not known."""
    if not pairs:
        return ["no pair is to be decided"]
    lines = []
    for pair in pairs:
        # Never rounded up: 0.7999 is for review because it is below 0.8.
        lines.append(f"{pair_name(pair.a.id, pair.b.id)}  similarity {math.floor(pair.score * 100) / 100:.2f}")
        lines += [f"  {_source(one, plan.rule.text)}" for one in (pair.a, pair.b)]
    lines.append("")
    if command:
        lines.append(f"decide: {command} --same PAIR (or --different PAIR)")
    else:
        lines.append(
            "decide with --same PAIR or --different PAIR, and with the options of the merge (--by, --prefer, ...) or"
            " the spider's file: it had another rule than this command names"
        )
    return lines if len(pairs) < limit else [*lines, "more: --limit N"]


def pairs_json(pairs: Sequence[Review]) -> list[str]:
    return [json_line({"pair": pair_name(pair.a.id, pair.b.id), **msgspec.to_builtins(pair)}) for pair in pairs]


def portrait(thing: ThingView) -> list[str]:
    data: dict[str, Any] = msgspec.json.decode(thing.data)
    whose: dict[str, str] = msgspec.json.decode(thing.provenance)
    lines = [f"thing      {thing.id}, kind {safe(thing.kind)}, {count(len(thing.sources), 'source')}"]
    width = max([0, *(len(safe(name, 30)) for name in data)])
    for name, value in data.items():
        text = safe(value if isinstance(value, str) else msgspec.json.encode(value).decode(), _LONGEST)
        origin = f"   <- {safe(whose[name])}" if name in whose else ""
        lines.append(f"  {safe(name, 30):{width}}  {text}{origin}")
    lines += [f"source     {safe(one.site)}/{safe(one.key)}  {safe_url(one.url)}" for one in thing.sources]
    return lines


def _source(source: SourceView, fields: Sequence[str]) -> str:
    data: dict[str, Any] = msgspec.json.decode(source.data) if source.data else {}
    text = next((value for name in fields if isinstance(value := data.get(name), str) and value), "")
    return f"{safe(source.site)}/{safe(source.key)}  {safe(text, _LONGEST)}  {safe_url(source.url)}".rstrip()

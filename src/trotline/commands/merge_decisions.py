"""What people decide about things: split one, or say that two records are the same or different."""

import itertools

import msgspec

from trotline.commands.merge import MergePlan, MergeReport, merge
from trotline.commands.merge_checks import BEFORE_ALL, check_names
from trotline.config import backends
from trotline.errors import SettingsError
from trotline.model.merge import NO_RULE, Review, ReviewDecision, ThingView, first_of, thing_id

MOST_SPLIT = 200
"""Sources of a thing that can be split into all of them: each pair of them is remembered."""


async def is_unmerged(sink: str) -> bool:
    """There are records, and none of them was merged yet."""
    store = backends.open_merge_store(sink)
    try:
        return not (await store.totals()).sources and bool(await store.changed(NO_RULE, (), BEFORE_ALL, 1))
    finally:
        await store.close()


async def show(sink: str, thing: str) -> ThingView:
    store = backends.open_merge_store(sink)
    try:
        found = await store.thing(thing)
    finally:
        await store.close()
    if found is None:
        raise SettingsError(
            f"there is no thing {thing!r}",
            hint="Ids are in the column _thing of the view merged_KIND, and in the view merged.",
        )
    return found


async def review(plan: MergePlan, limit: int) -> tuple[list[Review], bool]:
    """Pairs of the last merge; and whether the plan has its rule, without which none of them can be decided."""
    store = backends.open_merge_store(plan.sink)
    try:
        return await store.review(limit), await store.rule() in (0, plan.rule.fingerprint)
    finally:
        await store.close()


async def split(plan: MergePlan, thing: str, source: str = "") -> MergeReport:
    """Into all its sources, or only this one (SITE/KEY) from the others. It stays so in all later merges."""
    found = await show(plan.sink, thing)
    ids = [one.id for one in found.sources]
    names = {f"{one.site}/{one.key}": one.id for one in found.sources}
    if source and source not in names:
        raise SettingsError(f"thing {thing} has no source {source!r}", hint=f"It has: {', '.join(list(names)[:20])}")
    if len(ids) < 2:
        raise SettingsError(f"thing {thing} has one source only: {next(iter(names), '')}", hint="It cannot be split.")
    if not source and len(ids) > MOST_SPLIT:
        raise SettingsError(
            f"thing {thing} has {len(ids):,} sources, which is too many to split at once (at most {MOST_SPLIT})",
            hint="Take one out: --source SITE/KEY. Or change the rule that merged them, and merge again.",
        )
    pairs = [(names[source], one) for one in ids if one != names[source]] if source else itertools.combinations(ids, 2)
    return await decide(plan, [ReviewDecision(min(a, b), max(a, b), False) for a, b in pairs])


async def decide(plan: MergePlan, decisions: list[ReviewDecision]) -> MergeReport:
    """Remember it, and merge what it concerns."""
    store = backends.open_merge_store(plan.sink)
    try:
        await check_names(store, plan)
        await store.open()
        if await store.rule() != plan.rule.fingerprint:
            raise SettingsError(
                "the things here were merged by another rule than this command names: it would merge all of them again",
                hint="Give the options of that merge (--by, --prefer, ...), or the spider's file, as well.",
            )
        known = {source.id for source in await store.sources({one for decision in decisions for one in decision[:2]})}
        for decision in decisions:
            if unknown := [one for one in decision[:2] if one not in known]:
                raise SettingsError(
                    f"no record that was merged has the id {thing_id(unknown[0])}",
                    hint="Copy the pair from the list: --review. A pair is the ids of two records with a - between.",
                )
        await store.decide(decisions)
    finally:
        await store.close()
    return msgspec.structs.replace(await merge(plan), decided=tuple(decisions))


def pair_of(text: str) -> tuple[int, int]:
    """Two sources, as the review list names them; ValueError if it is no such name."""
    try:
        low, high = sorted(first_of(one) for one in text.split("-"))
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not the name of a pair") from None
    if low == high:
        raise ValueError(f"{text!r} names one record twice")
    return low, high


def pair_name(a: int, b: int) -> str:
    return f"{thing_id(a)}-{thing_id(b)}"

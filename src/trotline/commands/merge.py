"""Merges the records of a sink: step by step, until no record is new or changed."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from trotline.commands.merge_checks import BEFORE_ALL, check_names
from trotline.commands.merge_step import Step, Stepper
from trotline.config import backends
from trotline.errors import MergeRaced, SettingsError
from trotline.model.merge import NO_RULE, AuthorKey, Identity, MergeRule, MergeTotals, ReviewDecision, Source
from trotline.model.record import Record
from trotline.model.time import Seconds
from trotline.ports.merge_store import MergeStore

AT_ONCE = 20_000
"""Records of one step: one transaction, and as much as is computed again after a kill."""
_RACES = 20


class MergePlan(msgspec.Struct, frozen=True, kw_only=True):
    sink: str
    rule: MergeRule = MergeRule()
    author: AuthorKey | None = None
    kinds: tuple[str, ...] = ()
    """None: all."""
    at_once: int = AT_ONCE


class MergeReport(msgspec.Struct, frozen=True, kw_only=True):
    read: int = 0
    """Records that were new or changed."""
    gone: int = 0
    pairs: int = 0
    """Pairs of texts that were compared."""
    without_text: int = 0
    """Records that have none of the fields to compare."""
    cut_texts: int = 0
    """Records of whose text only the beginning is compared."""
    unlike: int = 0
    """Pairs with so many different words that their spellings were not compared."""
    crowded: int = 0
    """Keys that more records share than the rule allows: not used."""
    before: MergeTotals = MergeTotals()
    after: MergeTotals = MergeTotals()
    seconds: Seconds = 0.0
    dry_run: bool = False
    decided: tuple[ReviewDecision, ...] = ()
    """What a person has just decided."""


OnStep = Callable[[MergeReport], None]


async def merge(plan: MergePlan, on_step: OnStep = lambda report: None) -> MergeReport:
    """May be killed at any time, and repeated: what is merged already is not read again."""
    _need_library(plan.rule)
    store = backends.open_merge_store(plan.sink)
    try:
        await check_names(store, plan)
        await store.open()
        return await _merged(store, plan, on_step)
    finally:
        await store.close()


async def dry_run(plan: MergePlan, on_step: OnStep = lambda report: None) -> MergeReport:
    """The same result, in a copy of the records that is removed again. Nothing is written to the sink."""
    _need_library(plan.rule)
    store = backends.open_merge_store(plan.sink)
    try:
        await check_names(store, plan)
        before = await store.totals()
        with TemporaryDirectory(prefix="trotline-merge-") as folder:
            copy = f"sqlite:{Path(folder) / 'copy.db'}"
            await _copied(store, plan, copy)
            report = await merge(msgspec.structs.replace(plan, sink=copy), on_step)
    finally:
        await store.close()
    return msgspec.structs.replace(report, before=before, dry_run=True)


async def _copied(store: MergeStore, plan: MergePlan, copy: str) -> None:
    sink = backends.open_sink(copy)
    try:
        await sink.open()
        after = BEFORE_ALL
        while some := await store.changed(NO_RULE, plan.kinds, after, plan.at_once):
            await sink.write([_record(source) for source in some])
            after = some[-1][1:4]
    finally:
        await sink.close()
    things = backends.open_merge_store(copy)
    try:
        await things.open()
        await things.decide(await store.decisions())
    finally:
        await things.close()


def _record(source: Source) -> Record:
    data = msgspec.json.decode(source.data)
    return Record(kind=source.kind, key=source.key, data=data, url=source.url, site=source.site, seen_at=source.seen_at)


class _Left(NamedTuple):
    """What the steps to come have to read."""

    after: Identity
    """Records behind this one."""
    some_gone: bool
    """Look for records that are gone, too. It reads all sources: once per merge, unless one step was not enough."""


async def _merged(store: MergeStore, plan: MergePlan, on_step: OnStep) -> MergeReport:
    started = time.monotonic()
    report = MergeReport(before=await store.totals())
    crowded: set[int] = set()
    stepper = Stepper(store, plan.rule, plan.author)
    left: _Left | None = _Left(BEFORE_ALL, some_gone=True)
    while left is not None:
        with _no_collection():
            step, left = await _stepped(store, stepper, plan, left)
        if step is None:
            break
        crowded |= step.crowded
        report = msgspec.structs.replace(
            report,
            read=report.read + len(step.change.sources),
            gone=report.gone + len(step.change.gone),
            pairs=report.pairs + step.pairs,
            without_text=report.without_text + step.without_text,
            cut_texts=report.cut_texts + step.cut_texts,
            unlike=report.unlike + step.unlike,
            crowded=len(crowded),
            seconds=time.monotonic() - started,
        )
        on_step(report)
    if report.read or report.gone:
        await store.finish()
    return msgspec.structs.replace(report, after=await store.totals(), seconds=time.monotonic() - started)


@contextmanager
def _no_collection() -> Iterator[None]:
    """A step makes many objects and no cycles among them: looking for cycles would be a sixth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


async def _stepped(
    store: MergeStore, stepper: Stepper, plan: MergePlan, left: _Left
) -> tuple[Step | None, _Left | None]:
    """The step, and what may be left after it. Computed again if another merge was faster."""
    for _ in range(_RACES):
        version = await store.version()
        changed = await store.changed(plan.rule.fingerprint, plan.kinds, left.after, plan.at_once)
        gone = await store.gone(plan.at_once) if left.some_gone else []
        if not changed and not gone:
            return None, None
        step = await stepper.step(version, changed, gone)
        try:
            await store.apply(step.change)
        except MergeRaced:
            continue
        last = changed[-1][1:4] if changed else left.after
        some_gone = len(gone) == plan.at_once
        return step, _Left(last, some_gone) if some_gone or len(changed) == plan.at_once else None
    raise SettingsError(
        "another merge of the same records has been faster each time",
        hint="Let it finish, then start again: one merge at a time is enough.",
    )


def _need_library(rule: MergeRule) -> None:
    if "text" not in rule.by:
        return
    try:
        import rapidfuzz  # noqa: F401
        import rensa  # noqa: F401
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"comparing texts needs the package {error.name}, which is not installed here",
            hint="Install it, in your clone of Trotline: pip install '.[merge]'. Or merge by exact keys only: "
            "--by url,ids",
        ) from error

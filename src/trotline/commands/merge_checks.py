"""Names in the options of a merge that no record has: probably typing errors."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from trotline.config import backends
from trotline.errors import SettingsError
from trotline.model.merge import EVERY_FIELD, NO_RULE, Identity, Source
from trotline.ports.merge_store import MergeStore
from trotline.rules import name_suggestions

if TYPE_CHECKING:
    from trotline.commands.merge import MergePlan

LOOKED_AT = 1_000
BEFORE_ALL: Identity = ("", "", "")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def check_names(store: MergeStore, plan: "MergePlan") -> None:
    """Where there is no record at all, nothing can be said."""
    await _check_kinds(store, plan)
    # The file of a spider may name the fields of records to come.
    if plan.author is None:
        await _check_fields(store, plan)


async def _check_kinds(store: MergeStore, plan: "MergePlan") -> None:
    for kind in plan.kinds:
        if await store.changed(NO_RULE, (kind,), BEFORE_ALL, 1):
            continue
        if known := backends.count_kinds(plan.sink) or await _some_kinds(store):
            raise SettingsError(
                f"no record is of the kind {kind!r}", hint=name_suggestions.instead(kind, known, "kinds")
            )


async def _some_kinds(store: MergeStore) -> list[str]:
    """Of the first records: some sinks have too many rows to count."""
    some = await store.changed(NO_RULE, (), BEFORE_ALL, LOOKED_AT)
    return sorted({source.kind for source in some})


async def _check_fields(store: MergeStore, plan: "MergePlan") -> None:
    """Reads on only as long as a field was not found: few records may have it."""
    missing = [field for field in plan.rule.prefer if field != EVERY_FIELD]
    known: set[str] = set()
    async for sources in _pages(store, plan.kinds):
        if not missing:
            return
        for source in sources:
            known |= _decode(source.data).keys()
        missing = [field for field in missing if field not in known]
    if missing and known:
        raise SettingsError(
            f"no record has the field {missing[0]!r} of --prefer",
            hint=name_suggestions.instead(missing[0], sorted(known), "fields"),
        )


async def _pages(store: MergeStore, kinds: tuple[str, ...]) -> AsyncIterator[list[Source]]:
    after = BEFORE_ALL
    while some := await store.changed(NO_RULE, kinds, after, LOOKED_AT):
        yield some
        after = some[-1][1:4]

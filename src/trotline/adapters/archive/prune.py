"""`trotline archive prune`: files whose newest capture is older than asked are removed whole."""

from collections.abc import Mapping

from trotline.adapters.archive import object_reader
from trotline.adapters.archive.roll_files import FILE, INDEX, OPEN, ROLLED, span_of
from trotline.model.archive import ArchiveCut
from trotline.model.time import Moment, Seconds
from trotline.ports.object_store import ObjectStore, StoredObject
from trotline.rules import warc_reader

ABANDONED: Seconds = 86_400.0
"""A file without an index that is older than this: its writer died before it was whole, and its captures are in small
objects or were rolled again."""


async def prune(store: ObjectStore, before: Moment, *, dry_run: bool = False) -> ArchiveCut:
    """Revisits refer to bodies of the same file, so a file goes alone."""
    rolled = {one.name: one for one in await store.listed(ROLLED)}
    names, captures, kept = [], 0, 0
    for name in rolled:
        span = span_of(name)
        file = name.removesuffix(INDEX) + FILE
        if span is None:
            if (
                name.endswith(FILE)
                and name.removesuffix(FILE) + INDEX not in rolled
                and _is_abandoned(rolled, name, before)
            ):
                names.append(name)
        elif span.last <= before:
            captures += await _lines_in(store, name)
            # The index first: a file without one is not found, and removed the next time.
            names += [name, *([file] if file in rolled else ())]
        else:
            kept += 1
    kept += len(await store.listed(OPEN))
    if not dry_run:
        await store.delete(names)
    files = sum(name.endswith(FILE) for name in names)
    return ArchiveCut(files=files, size=sum(rolled[name].size for name in names), captures=captures, kept=kept)


async def _lines_in(store: ObjectStore, index: str) -> int:
    number = 0
    try:
        async for some in object_reader.lines(store, index):
            number += some.count(b"\n") + 1
    except (KeyError, warc_reader.Bad):
        # Removed meanwhile, or not an index: none of its captures could be found.
        return 0
    return number


def _is_abandoned(rolled: Mapping[str, StoredObject], name: str, before: Moment) -> bool:
    newest = max(one.modified for one in rolled.values())
    return rolled[name].modified < min(before, newest - ABANDONED)

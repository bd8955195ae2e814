"""Reads records of an archive, and says which are damaged: they are skipped if the reader can say so, or an error."""

from collections.abc import AsyncIterator

import msgspec

from trotline.adapters.archive import object_reader
from trotline.adapters.archive.object_reader import Stored
from trotline.errors import ArchiveDamaged
from trotline.model.archive import ArchiveDamage, ArchivedPage, ArchiveEntry
from trotline.ports.archive import Skipped
from trotline.ports.object_store import ObjectStore
from trotline.rules import warc_reader
from trotline.rules.archive_queries import VERIFY


def told(damage: ArchiveDamage, skipped: Skipped | None) -> None:
    if skipped is None:
        raise damaged(damage)
    skipped(damage)


def damaged(damage: ArchiveDamage) -> ArchiveDamaged:
    where = f"{damage.file} is damaged at {damage.url}" if damage.url else f"{damage.file} is damaged"
    return ArchiveDamaged(f"{where}: {damage.what}", hint=VERIFY)


def damage_of(entry: ArchiveEntry, what: object) -> ArchiveDamage:
    return ArchiveDamage(file=entry.file, offset=entry.offset, url=entry.url, what=str(what))


async def captures(
    store: ObjectStore, name: str, skipped: Skipped | None
) -> AsyncIterator[tuple[ArchiveEntry, Stored]]:
    """Of a file without an index; `KeyError` if it is gone, also when a part of it was read. What follows damage in it
    is not read: nothing says where the next record begins."""
    at = 0
    try:
        async for stored in object_reader.records(store, name):
            at = stored.end
            try:
                entry = warc_reader.capture_of(stored.record)
            except warc_reader.Bad as error:
                told(ArchiveDamage(file=name, offset=stored.offset, what=str(error)), skipped)
                continue
            if entry is not None:
                yield placed(entry, name, stored), stored
    except warc_reader.Bad as error:
        told(ArchiveDamage(file=name, offset=at, what=f"{error}; the rest of it is not read"), skipped)


def placed(entry: ArchiveEntry, name: str, stored: Stored) -> ArchiveEntry:
    return msgspec.structs.replace(entry, file=name, offset=stored.offset, length=len(stored.packed))


def record_of(entry: ArchiveEntry, data: bytes) -> warc_reader.Record:
    """`Bad` if the index names something else."""
    record = warc_reader.record(data)
    if warc_reader.id_of(record) != entry.id:
        raise warc_reader.Bad("the index has another place for it")
    return record


def page_of(
    entry: ArchiveEntry, record: warc_reader.Record, original: warc_reader.Record | None, *, check: bool = False
) -> ArchivedPage:
    page = warc_reader.page_of(entry, record, original)
    if check or (entry.is_revisit and original is None):
        warc_reader.check_digest(page, record)
    return page

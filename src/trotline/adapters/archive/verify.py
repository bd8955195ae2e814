"""`trotline archive verify`: reads everything, and says what is damaged."""

from trotline.adapters.archive import object_reader, record_reader
from trotline.adapters.archive.roll_files import FILE, INDEX, OPEN, ROLLED, span_of
from trotline.errors import ArchiveDamaged
from trotline.model.archive import ArchiveCheck, ArchiveDamage, ArchiveEntry
from trotline.ports.object_store import ObjectStore, StoredObject
from trotline.rules import cdxj, warc_reader

_OF_WARC = (FILE, INDEX, ".warc")


class _Finding:
    def __init__(self) -> None:
        self.files = 0
        self.captures = set[str]()
        self.orphans: dict[str, ArchiveDamage] = {}
        """Revisits of small objects without the one that has their body, by id."""
        self.damages: list[ArchiveDamage] = []
        self.size = 0

    def damaged(self, file: str, what: str, offset: int = 0) -> None:
        self.damages.append(ArchiveDamage(file=file, offset=offset, what=what))


async def check(store: ObjectStore) -> ArchiveCheck:
    found = _Finding()
    # Open ones first: what is rolled meanwhile is found in its file, and not missed.
    await _check_open(store, found)
    rolled = await _listed(store, found)
    indexes = {one.name for one in rolled if span_of(one.name) is not None}
    for one in rolled:
        if one.name.endswith(FILE) and one.name.removesuffix(FILE) + INDEX in indexes:
            await _check_file(store, one, found)
        elif one.name not in indexes and not one.name.endswith(FILE):
            found.damaged(one.name, "it is not a file of an archive")
    for name in sorted(indexes - {one.name.removesuffix(FILE) + INDEX for one in rolled if one.name.endswith(FILE)}):
        found.damaged(name, "the file of this index is missing")
    for capture, damage in found.orphans.items():
        # A writer removes its small objects one by one, and the first ones first, when they are in a file.
        if capture not in found.captures:
            found.damages.append(damage)
            found.captures.add(capture)
    for one in rolled:
        if one.name.endswith(FILE) and one.name.removesuffix(FILE) + INDEX not in indexes:
            await _check_without_index(store, one, found)
    return ArchiveCheck(files=found.files, captures=len(found.captures), size=found.size, damages=tuple(found.damages))


async def _check_open(store: ObjectStore, found: _Finding) -> None:
    bodies: dict[str, set[str]] = {}
    for one in await store.listed(OPEN):
        writer = one.name.split("/")[1]
        await _check_records(store, one, found, bodies.setdefault(writer, set()), found.orphans)


async def _listed(store: ObjectStore, found: _Finding) -> list[StoredObject]:
    """Rolled files. A WARC file that lies beside the folders of the archive is not read by anything."""
    rolled = []
    for one in await store.listed(""):
        if one.name.startswith(f"{ROLLED}/"):
            rolled.append(one)
        elif not one.name.startswith(f"{OPEN}/") and one.name.endswith(_OF_WARC):
            where = ": move it into a folder of open/, such as open/added/" if one.name.endswith(FILE) else ""
            found.damaged(one.name, f"it is not read here{where}")
    return rolled


async def _check_file(store: ObjectStore, one: StoredObject, found: _Finding) -> None:
    there = await _check_records(store, one, found, set())
    if there is None:
        return
    index = one.name.removesuffix(FILE) + INDEX
    listed = dict[str, ArchiveEntry]()
    try:
        async for some in object_reader.lines(store, index):
            listed.update((entry.id, entry) for entry in cdxj.read(some, one.name))
    except (KeyError, ValueError) as error:
        found.damaged(index, f"its index cannot be read: {error}")
        return
    for entry in there:
        said = listed.pop(entry.id, None)
        if said is None:
            found.damaged(one.name, f"the index does not have {entry.url}", entry.offset)
        elif (said.offset, said.length, said.digest) != (entry.offset, entry.length, entry.digest):
            found.damaged(one.name, f"the index has another place for {entry.url}", entry.offset)
    for said in listed.values():
        found.damaged(one.name, f"{said.url} is in the index and not in the file", said.offset)


async def _check_without_index(store: ObjectStore, one: StoredObject, found: _Finding) -> None:
    """A writer that died before it wrote the index leaves such a file, and its captures in small objects: no damage."""
    try:
        ids = {entry.id async for entry, _ in record_reader.captures(store, one.name, None)}
        if await _has_index_now(store, one):
            return
    except KeyError:
        # Pruned since it was listed.
        return
    except ArchiveDamaged as error:
        found.damaged(one.name, f"its index is missing; {error.what}")
        return
    if lost := len(ids - found.captures):
        captures = "1 capture is" if lost == 1 else f"{lost:,} captures are"
        found.damaged(one.name, f"its index is missing, so {captures} not found. In a folder of open/ it is read again")


async def _has_index_now(store: ObjectStore, one: StoredObject) -> bool:
    """Rolled while we read."""
    try:
        await store.get(one.name.removesuffix(FILE) + INDEX, 0, 1)
    except KeyError:
        return False
    return True


async def _check_records(
    store: ObjectStore,
    one: StoredObject,
    found: _Finding,
    bodies: set[str],
    orphans: dict[str, ArchiveDamage] | None = None,
) -> list[ArchiveEntry] | None:
    """None: rolled or pruned since it was listed. `orphans`: the body of a revisit may be in another file."""
    entries, at, name = list[ArchiveEntry](), 0, one.name
    try:
        async for stored in object_reader.records(store, name):
            at, record = stored.end, stored.record
            entry = warc_reader.capture_of(record)
            if entry is None:
                continue
            entries.append(record_reader.placed(entry, name, stored))
            if entry.is_revisit and entry.digest not in bodies:
                what = f"the body that {entry.url} refers to is not in its file"
                if orphans is not None:
                    orphans[entry.id] = ArchiveDamage(file=name, offset=stored.offset, what=what)
                    continue
                found.damaged(name, what, stored.offset)
            elif not entry.is_revisit:
                if why := _wrong_body(entry, record):
                    found.damaged(name, why, stored.offset)
                    continue
                bodies.add(entry.digest)
            found.captures.add(entry.id)
    except KeyError:
        return None
    except warc_reader.Bad as error:
        found.damaged(name, str(error), at)
    found.files += 1
    found.size += one.size
    return entries


def _wrong_body(entry: ArchiveEntry, record: warc_reader.Record) -> str:
    """What is wrong with the body of a record that is whole: others follow it."""
    try:
        warc_reader.check_digest(warc_reader.page_of(entry, record), record)
    except warc_reader.Bad as error:
        return str(error)
    return ""

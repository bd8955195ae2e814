"""Objects that are read piece by piece: the same as if they were read whole."""

import pytest

from trotline.adapters.archive import object_reader, page_reader
from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.model.archive import ArchiveQuery
from trotline.rules import warc_reader, warc_writer
from trotline.testing.archive_contract import ALL, capture, read

BODIES = [b"%d " % number * size for number, size in enumerate([1, 2000, 1, 1, 90_000, 3, 2000])]


@pytest.mark.parametrize("piece", [1, 7, 100, 4096, 1 << 20])
async def test_records_are_those_of_the_whole_object(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(object_reader, "PIECE", piece)
    store = FolderStore(tmp_path)
    packed = [warc_writer.encode(capture(number, body=body), {}).data for number, body in enumerate(BODIES)]
    data = b"".join(packed)
    await store.put("open/w/0.warc.gz", data)
    found = [one async for one in object_reader.records(store, "open/w/0.warc.gz")]
    assert [(one.offset, len(one.packed), one.record) for one in found] == list(warc_reader.records(data))
    assert b"".join(one.packed for one in found) == data
    await store.put("open/w/0.warc.gz", data[:-1])
    with pytest.raises(warc_reader.Bad, match="ends in the middle"):
        [one async for one in object_reader.records(store, "open/w/0.warc.gz")]


@pytest.mark.parametrize("wanted", [1, 2, 3, 5, 1000])
async def test_lines_are_those_of_the_whole_object(tmp_path, wanted):
    store, text = FolderStore(tmp_path), b"one\n\ntwo\nthree and more\nlast"
    await store.put("x", text)
    for data in (text, text + b"\n", b""):
        await store.put("x", data)
        found = [one async for one in object_reader.lines(store, "x", wanted=wanted)]
        assert b"\n".join(found) == data.removesuffix(b"\n")


@pytest.mark.parametrize("room", [0, 3000, 1 << 20])
@pytest.mark.parametrize("is_rolled", [True, False])
async def test_revisits_are_read_whatever_is_kept_of_their_bodies(tmp_path, monkeypatch, room, is_rolled):
    monkeypatch.setattr(page_reader, "_MOST_PACKED", room)
    monkeypatch.setattr(page_reader, "PIECE", 2000)
    archive = ObjectArchive(FolderStore(tmp_path), "w")
    bodies = {number: b"body %d " % (number % 3) * 1000 for number in range(9)}
    for number, body in bodies.items():
        await archive.write([capture(number, body=body)])
    if is_rolled:
        await archive.close()
    pages = await read(ObjectArchive(FolderStore(tmp_path)), ALL)
    assert {int(page.entry.id, 16): page.answer.body for page in pages} == bodies
    some = await read(ObjectArchive(FolderStore(tmp_path)), ArchiveQuery(url=capture(8).url))
    assert [page.answer.body for page in some] == [bodies[8]]

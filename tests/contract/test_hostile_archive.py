"""An archive that somebody else writes into: what is odd is named as damage, and all other pages are read."""

import gzip
import json
import os
import pty
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from uuid import uuid4

import pytest

from trotline.adapters.archive import object_reader
from trotline.commands import archive as commands
from trotline.errors import ArchiveDamaged
from trotline.model.archive import ArchiveQuery
from trotline.rules import warc_reader, warc_writer

NAME = "warc/20260101/20260101T000000-20260101T000000-w_1"
AT = 1_767_225_600.0


def record(
    url="http://odd.test/",
    status=b"200",
    about=None,
    urn="",
    date="2026-01-01T00:00:00Z",
    body=b"x",
    digest="",
    coding=b"identity",
    **more,
):
    head = b"HTTP/1.1 " + status + b" OK\r\ncontent-type: text/html\r\ncontent-encoding: " + coding
    block = head + b"\r\ncontent-length: 1\r\n\r\n" + body
    fields = {
        "WARC-Type": "response",
        "WARC-Record-ID": urn or f"<urn:uuid:{uuid4()}>",
        "WARC-Date": date,
        "WARC-Target-URI": url,
        "WARC-Payload-Digest": digest or warc_writer.digest_of(body),
        "WARC-JSON-Metadata": json.dumps(about or {}),
        "Content-Length": len(block),
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return gzip.compress(f"WARC/1.1\r\n{head}\r\n".encode() + block + b"\r\n\r\n")


def line(**changed):
    fields = {"url": "http://odd.test/", "id": "a" * 32, "at": AT, "offset": "0", "length": "100", "status": "200"}
    return b"test,odd)/ 20260101000000 " + json.dumps(fields | changed).encode() + b"\n"


def put(folder, name, data):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    # Its writer has died.
    os.utime(file, (time.time() - 7200,) * 2)


async def read_all(folder, tmp_path):
    """Every command; URLs of `list` and of `export`, and the damages."""
    url = f"file:{folder}"
    await commands.compact(url)
    listed, skipped = await commands.entries(url, ArchiveQuery())
    exported, left_out = await commands.export(url, ArchiveQuery(), tmp_path / "all.warc.gz")
    damages = (await commands.verify(url)).damages
    return {entry.url for entry in listed}, exported, bool(damages), bool(skipped or left_out)


@pytest.mark.parametrize(
    "odd",
    [
        {"status": b"2" * 5000},
        {"status": b"2000"},
        {"about": {"seen_at": 10**400}},
        {"about": {"seen_at": 1e300}},
        {"about": {"seen_at": -1e12}},
        {"date": "0001-01-01T00:00:00+14:00"},
        {"urn": "<urn:uuid:zz>"},
        {"urn": "\x1b[31m"},
    ],
)
async def test_an_odd_record_is_named_and_the_others_are_read(tmp_path, odd):
    folder = tmp_path / "pages"
    put(folder, "open/dead/00000000.warc.gz", record("http://good.test/") + record(**odd))
    listed, exported, damaged, left_out = await read_all(folder, tmp_path)
    assert (listed, exported, damaged, left_out) == ({"http://good.test/"}, 1, True, True)


@pytest.mark.parametrize(
    "odd",
    [
        {"offset": "9" * 25},
        {"offset": str(2**62)},
        {"length": str(2**62)},
        {"length": str(2**40)},
        {"at": 1e300},
        {"status": "9" * 5000},
        {"status": "²"},
        {"id": "zz"},
    ],
)
async def test_an_odd_line_of_an_index_is_named_and_the_others_are_read(tmp_path, odd):
    folder = tmp_path / "pages"
    put(folder, "open/dead/00000000.warc.gz", record("http://good.test/"))
    put(folder, f"{NAME}.warc.gz", record())
    put(folder, f"{NAME}.cdxj", line(**odd))
    listed, exported, damaged, left_out = await read_all(folder, tmp_path)
    assert "http://good.test/" in listed
    assert (exported, damaged, left_out) == (1, True, True)
    if "http://odd.test/" in listed:
        with pytest.raises(ArchiveDamaged):
            await commands.get(f"file:{folder}", "http://odd.test/", None)


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(b"page " * 100)[:-4],
        gzip.compress(b"page " * 100) + b"more",
        gzip.compress(b"page " * 100)[:-8] + b"\0" * 8,
        b"\x1f\x8b nonsense",
        gzip.compress(b"") * 1000,
        gzip.compress(bytes(3_000_000)),
    ],
    ids=["cut", "followed", "wrong checksum", "nonsense", "members", "bomb"],
)
@pytest.mark.parametrize("is_rolled", [True, False])
async def test_a_coded_body_that_cannot_be_decoded_is_named_and_the_others_are_read(
    tmp_path, monkeypatch, body, is_rolled
):
    monkeypatch.setattr(warc_reader, "LARGEST_RECORD", 2_000_000)
    folder, url = tmp_path / "pages", f"file:{tmp_path / 'pages'}"
    records = [record("http://good.test/"), record(coding=b"gzip", body=body), record("http://last.test/")]
    put(folder, "open/dead/00000000.warc.gz", b"".join(records))
    if is_rolled:
        assert (await commands.compact(url)).files == 1
    exported, left_out = await commands.export(url, ArchiveQuery(), tmp_path / "all.warc.gz")
    assert (exported, sum(left_out.reasons.values())) == (2, 1)
    # Its record is whole: what follows it is checked, too.
    found = await commands.verify(url)
    assert (found.captures, len(found.damages)) == (2, 1)
    assert (await commands.get(url, "http://last.test/", None))[0].answer.body == b"x"
    with pytest.raises(ArchiveDamaged, match="bod"):
        await commands.get(url, "http://odd.test/", None)


@pytest.mark.parametrize(
    "name",
    [
        b"open/caf\xe9/0.warc.gz",
        b"open/x/\xe9.warc.gz",
        b"open/\xe9.warc.gz",
        b"open/a\nb/0.warc.gz",
        b"warc/\xe9/0.cdxj",
        b"\xe9/0.warc.gz",
    ],
)
async def test_what_has_an_odd_name_is_named_and_the_others_are_read(tmp_path, caplog, name):
    folder = tmp_path / "pages"
    put(folder, os.fsdecode(name), record())
    put(folder, "open/dead/00000000.warc.gz", record("http://good.test/"))
    await commands.check(f"file:{folder}")
    assert await read_all(folder, tmp_path) == ({"http://good.test/"}, 1, False, False)
    assert "archive.odd_name" in caplog.text
    assert caplog.text.isascii()


@pytest.mark.parametrize("name", ["open/{}/0.warc.gz", "open/{}.warc.gz", "open/x/{}.warc.gz"])
async def test_a_name_may_be_as_long_as_a_folder_allows(tmp_path, name):
    folder = tmp_path / "pages"
    for letter in "ab":
        put(folder, name.format("n" * 220 + letter), record(f"http://{letter}.test/"))
    await commands.check(f"file:{folder}")
    urls = {"http://a.test/", "http://b.test/"}
    assert await read_all(folder, tmp_path) == (urls, 2, False, False)
    assert len(list(folder.glob("warc/*/*.warc.gz"))) == (1 if "/x/" in name else 2)


def sparse(file, size=20 * 2**30, start=b""):
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as made:
        made.write(start)
        made.truncate(size)
    os.utime(file, (time.time() - 7200,) * 2)


def folder_of_files(file):
    file.mkdir(parents=True)
    (file / "0.warc.gz").write_bytes(b"x")


def without_end(file):
    """A member that goes on and on, and gives nothing: empty blocks."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\x1f\x8b\x08" + bytes(7) + b"\0\0\0\xff\xff" * 8_000_000)


def empty(file):
    put(file.parent, file.name, b"")


def foreign(data):
    return lambda file: put(file.parent, file.name, data)


@pytest.mark.parametrize("place", ["open/odd/0.warc.gz", "open/odd.warc.gz", f"{NAME}.warc.gz", f"{NAME}.cdxj"])
@pytest.mark.parametrize(
    "make",
    [
        sparse,
        lambda file: sparse(file, start=record()),
        lambda file: sparse(file, start=line()),
        folder_of_files,
        without_end,
        empty,
        foreign(record()[:50]),
        foreign(b"not gzip"),
        foreign(gzip.compress(b"no record")),
        foreign(b"no line\n"),
    ],
    ids=["sparse", "record", "line", "folder", "endless", "empty", "cut", "foreign", "no record", "no line"],
)
async def test_an_odd_object_is_named_and_the_others_are_read(tmp_path, monkeypatch, place, make):
    monkeypatch.setattr(object_reader, "LARGEST_RECORD", 20_000_000)
    folder = tmp_path / "pages"
    put(folder, "open/dead/00000000.warc.gz", record("http://good.test/"))
    if place.startswith("warc"):
        for name, data in ((f"{NAME}.warc.gz", record()), (f"{NAME}.cdxj", line(length=str(len(record()))))):
            if name != place:
                put(folder, name, data)
    make(folder / place)
    url = f"file:{folder}"
    tracemalloc.start()
    try:
        await commands.check(url)
        listed, exported, damaged, left_out = await read_all(folder, tmp_path)
        cut = await commands.prune(url, time.time(), dry_run=True)
        found, _ = await commands.get(url, "http://good.test/", None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert listed | {"http://odd.test/"} == {"http://good.test/", "http://odd.test/"}
    assert exported in (1, 2)
    assert found.answer.body == b"x"
    assert cut.captures < 10
    # What has nothing in it, and is in no index, has lost nothing. What has no index is not read.
    assert damaged is not (make is empty and place.startswith("open"))
    is_unseen = make in (empty, folder_of_files) and place.endswith("cdxj")
    assert left_out is (damaged and not is_unseen)
    assert peak < 120_000_000


@pytest.mark.parametrize(
    "odd",
    [{"url": "http://odd.test/" + "a" * 20_000_000}, {"about": {"job": "j" * 20_000_000}}],
    ids=["url", "job"],
)
async def test_an_endless_text_of_one_page_does_not_make_the_index_of_others_unreadable(tmp_path, odd):
    folder = tmp_path / "pages"
    put(folder, "open/dead/00000000.warc.gz", record("http://good.test/"))
    put(folder, "open/dead/00000001.warc.gz", record(**odd))
    assert await read_all(folder, tmp_path) == ({"http://good.test/"}, 1, True, True)


async def test_a_page_with_an_endless_type_is_found(tmp_path):
    folder = tmp_path / "pages"
    put(
        folder, "open/dead/00000000.warc.gz", record(status=b"200 OK\r\ncontent-type: " + b"t" * 20_000_000 + b"\r\na:")
    )
    assert await read_all(folder, tmp_path) == ({"http://odd.test/"}, 1, False, False)


async def test_a_page_whose_file_is_missing_is_damage(tmp_path):
    put(tmp_path, f"{NAME}.cdxj", line())
    with pytest.raises(ArchiveDamaged, match="its file is missing"):
        await commands.get(f"file:{tmp_path}", "http://odd.test/", None)


@pytest.mark.parametrize("status", [b"000", b"001", b"999"])
async def test_a_page_with_an_odd_status_is_exported_so_that_it_can_be_read(tmp_path, status):
    folder, again = tmp_path / "pages", tmp_path / "again"
    put(folder, "open/dead/00000000.warc.gz", record(status=status))
    (again / "open").mkdir(parents=True)
    await commands.export(f"file:{folder}", ArchiveQuery(), again / "open" / "all.warc.gz")
    assert await read_all(again, tmp_path) == ({"http://odd.test/"}, 1, False, False)
    found, _ = await commands.get(f"file:{again}", "http://odd.test/", None)
    assert found.answer.status == int(status)


async def test_a_line_break_in_an_address_begins_no_new_field(tmp_path):
    folder = tmp_path / "pages"
    put(folder, "open/dead/00000000.warc.gz", record(WARC_IP_Address="1\nWARC-Target-URI: http://other.test/"))
    await commands.export(f"file:{folder}", ArchiveQuery(), tmp_path / "all.warc.gz")
    assert b"\nWARC-Target-URI: http://other.test/" not in gzip.decompress((tmp_path / "all.warc.gz").read_bytes())


async def test_pages_that_were_not_rolled_are_not_all_in_memory_at_once(tmp_path):
    """60 kB in a file, 60 MB unpacked."""
    put(tmp_path, "open/w/00000000.warc.gz", b"".join(record(body=b"%d" % n * 2_000_000) for n in range(10, 40)))
    tracemalloc.start()
    try:
        async with commands.existing(f"file:{tmp_path}") as archive:
            pages = [page.entry.id async for page in archive.pages(ArchiveQuery())]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(pages) == 30
    assert peak < 40_000_000


@pytest.mark.parametrize(
    ("body", "shown"), [(b"plain text", True), (b"\x1b]0;owned\x07", False), ("\x9b2J".encode(), False)]
)
def test_orders_for_a_terminal_are_not_printed_on_one(tmp_path, body, shown):
    put(tmp_path, "open/dead/00000000.warc.gz", record(body=body))
    trotline = Path(sys.executable).with_name("trotline")
    command = [trotline, "archive", "get", "http://odd.test/", "--archive", f"file:{tmp_path}"]
    terminal, inside = pty.openpty()
    ended = subprocess.run(command, stdout=inside, stderr=subprocess.PIPE, check=False)
    os.close(inside)
    try:
        said = os.read(terminal, 1000)
    except OSError:
        said = b""
    os.close(terminal)
    assert (ended.returncode, body in said) == ((0, True) if shown else (2, False)), ended.stderr

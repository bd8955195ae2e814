"""WARC records that are cut, changed, too large or foreign: they are said to be."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.rules.test_warc_writer import BODY, capture, coded
from trotline.rules import warc_reader, warc_writer


@pytest.mark.parametrize("made", [capture(), coded(BODY)], ids=["decoded", "as it came"])
def test_every_cut_and_every_changed_byte_is_noticed(made):
    written = warc_writer.encode(made, {})
    data = written.data[: written.entry.length]
    for end in range(1, len(data)):
        with pytest.raises(warc_reader.Bad):
            list(warc_reader.records(data[:end]))
    [(_, _, whole)] = warc_reader.records(data)
    # Not the bytes of the gzip header that say when and where it was made.
    for place in (0, 1, 2, *range(10, len(data))):
        broken = bytearray(data)
        broken[place] ^= 0x55
        try:
            [(_, _, record)] = warc_reader.records(bytes(broken))
        except warc_reader.Bad:
            continue
        # The code of a byte that does not occur.
        assert record == whole


def test_a_body_that_does_not_have_its_digest_is_bad():
    written = warc_writer.encode(capture(), {})
    plain = gzip.decompress(written.data[: written.entry.length]).replace(b"some text ", b"SOME text ", 1)
    [(_, _, record)] = warc_reader.records(gzip.compress(plain))
    page = warc_reader.page_of(written.entry, record)
    with pytest.raises(warc_reader.Bad, match="digest"):
        warc_reader.check_digest(page, record)


def test_a_bomb_is_stopped(monkeypatch):
    monkeypatch.setattr(warc_reader, "LARGEST_RECORD", 1_000_000)
    with pytest.raises(warc_reader.Bad, match="more than"):
        list(warc_reader.records(gzip.compress(b"\0" * 5_000_000)))


@pytest.mark.parametrize("name", ["_member", "_parsed", "_undone"])
def test_a_record_that_is_larger_than_the_memory_is_damage(monkeypatch, name):
    written = warc_writer.encode(coded(BODY), {})

    def fail(*given):
        raise MemoryError

    monkeypatch.setattr(warc_reader, name, fail)
    with pytest.raises(warc_reader.Bad, match="more memory"):
        for _, _, record in warc_reader.records(written.data):
            warc_reader.page_of(written.entry, record)


@given(st.binary(max_size=300))
def test_nothing_else_is_raised_for_foreign_bytes(data):
    try:
        for _, _, record in warc_reader.records(gzip.compress(b"WARC/1.1\r\n" + data)):
            if (entry := warc_reader.capture_of(record)) is not None:
                warc_reader.page_of(entry, record)
    except warc_reader.Bad:
        return


def reads(body):
    """The page of a record whose body says that it is gzip-coded."""
    made = capture(body=body, is_coded=True, headers=(("content-encoding", "gzip"),))
    written = warc_writer.encode(made, {})
    [(_, _, record), _] = warc_reader.records(written.data)
    return warc_reader.page_of(written.entry, record)


CODED = gzip.compress(BODY, mtime=0)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (CODED[:-1], "ends in the middle"),
        (CODED[:20], "ends in the middle"),
        (b"\x1f\x8b", "ends in the middle"),
        (CODED + b"more", "goes on"),
        (CODED + b"\0", "goes on"),
        (CODED + CODED[:20], "ends in the middle"),
        (CODED[:-8] + b"\0" * 8, "is not gzip"),
        (b"\x1f\x8b\xff nonsense", "is not gzip"),
        (gzip.compress(b"") * 65, "goes on"),
    ],
    ids=range(9),
)
def test_a_coded_body_that_is_not_whole_is_damage(body, why):
    with pytest.raises(warc_reader.Bad, match=why):
        reads(body)


def test_a_coded_bomb_is_stopped(monkeypatch):
    bomb = gzip.compress(b"\0" * 5_000_000)
    monkeypatch.setattr(warc_reader, "LARGEST_RECORD", 1_000_000)
    with pytest.raises(warc_reader.Bad, match="more than 1000000 bytes"):
        reads(bomb)
    with pytest.raises(warc_reader.Bad, match="more than 1000000 bytes"):
        reads(gzip.compress(b"\0" * 400_000) * 3)


@given(st.binary(max_size=200), st.integers(0, 60), st.integers(1, 255))
def test_a_coded_body_that_somebody_changed_is_damage_or_another_page(body, place, change):
    packed = bytearray(gzip.compress(body))
    packed[place % len(packed)] ^= change
    try:
        page = reads(bytes(packed))
    except warc_reader.Bad:
        return
    # Bytes of its head, or without the mark of gzip: then it is read as it is.
    assert page.answer.body in (body, bytes(packed))


def test_a_body_of_another_program_that_is_decoded_already_is_read_as_it_is():
    assert reads(b"<html>").answer.body == b"<html>"
    assert reads(b"").answer.body == b""


def test_of_another_program_the_last_header_is_not_lost():
    written = warc_writer.encode(coded(BODY), {})
    plain = gzip.decompress(written.data[: written.entry.length])
    before, _, after = plain.partition(b"\r\n\r\n")
    head, _, rest = after.partition(b"content-length: ")
    block = head.removesuffix(b"\r\n") + b"\r\n\r\n" + rest.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n\r\n")
    fields = before.rpartition(b"Content-Length: ")[0] + b"Content-Length: %d" % len(block)
    [(_, _, record)] = warc_reader.records(gzip.compress(fields + b"\r\n\r\n" + block + b"\r\n\r\n"))
    page = warc_reader.page_of(written.entry, record)
    assert page.answer.headers == coded(BODY).headers
    assert page.answer.body == BODY


def test_a_digest_of_another_kind_is_not_called_a_wrong_one():
    written = warc_writer.encode(capture(), {})
    [(_, _, record)] = [one for one in warc_reader.records(written.data) if one[2].fields["warc-type"] == "response"]
    foreign = record._replace(fields={**record.fields, "warc-payload-digest": "sha1:2FD4E1C67A2D28FCED849EE1BB76E739"})
    with pytest.raises(warc_reader.Bad, match="another program wrote it"):
        warc_reader.check_digest(warc_reader.page_of(written.entry, foreign), foreign)

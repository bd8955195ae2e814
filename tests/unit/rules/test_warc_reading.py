"""WARC records that are cut, changed, too large or foreign: they are said to be."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.rules.test_warc import capture
from trotline.rules import warc, warc_reading


def test_every_cut_and_every_changed_byte_is_noticed():
    written = warc.encode(capture(), {})
    data = written.data[: written.entry.length]
    for end in range(1, len(data)):
        with pytest.raises(warc_reading.Bad):
            list(warc_reading.records(data[:end]))
    # Not the bytes of the gzip header that say when and where it was made.
    for place in (0, 1, 2, *range(10, len(data))):
        broken = bytearray(data)
        broken[place] ^= 0x55
        with pytest.raises(warc_reading.Bad):
            [(_, _, record)] = warc_reading.records(bytes(broken))
            warc_reading.page_of(written.entry, record)


def test_a_body_that_does_not_have_its_digest_is_bad():
    written = warc.encode(capture(), {})
    plain = gzip.decompress(written.data[: written.entry.length]).replace(b"some text ", b"SOME text ", 1)
    [(_, _, record)] = warc_reading.records(gzip.compress(plain))
    page = warc_reading.page_of(written.entry, record)
    with pytest.raises(warc_reading.Bad, match="digest"):
        warc_reading.check_digest(page, record)


def test_a_bomb_is_stopped(monkeypatch):
    monkeypatch.setattr(warc_reading, "LARGEST_RECORD", 1_000_000)
    with pytest.raises(warc_reading.Bad, match="more than"):
        list(warc_reading.records(gzip.compress(b"\0" * 5_000_000)))


@given(st.binary(max_size=300))
def test_nothing_else_is_raised_for_foreign_bytes(data):
    try:
        for _, _, record in warc_reading.records(gzip.compress(b"WARC/1.1\r\n" + data)):
            if (entry := warc_reading.capture_of(record)) is not None:
                warc_reading.page_of(entry, record)
    except warc_reading.Bad:
        return


def test_a_digest_of_another_kind_is_not_called_a_wrong_one():
    written = warc.encode(capture(), {})
    [(_, _, record)] = [one for one in warc_reading.records(written.data) if one[2].fields["warc-type"] == "response"]
    foreign = record._replace(fields={**record.fields, "warc-payload-digest": "sha1:2FD4E1C67A2D28FCED849EE1BB76E739"})
    with pytest.raises(warc_reading.Bad, match="another program wrote it"):
        warc_reading.check_digest(warc_reading.page_of(written.entry, foreign), foreign)

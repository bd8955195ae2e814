"""WARC records: what was written is read back, by us and by others; what is damaged is said to be."""

import gzip
import io
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from tests.warc_readers import by_fastwarc, by_warcio
from trotline.model.archive import Capture, CaptureKind
from trotline.rules import warc_reader, warc_writer

AT = 1_800_000_000.123456
BODY = b"<html>" + b"some text " * 100

_token = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
_value = st.text(
    st.characters(min_codepoint=0x20, exclude_characters="\x7f", exclude_categories=("Cc", "Cs", "Zl", "Zp"))
)


def capture(**more):
    fields = {"id": "0" * 31 + "1", "url": "https://shop.example/p/1", "at": AT, "status": 200, "body": BODY}
    return Capture(**{**fields, **more})


@given(
    body=st.binary(max_size=3000),
    headers=st.lists(st.tuples(_token, _value.map(str.strip)), max_size=6),
    status=st.integers(100, 599),
    meta=st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3),
)
def test_what_was_written_is_read_back(body, headers, status, meta):
    made = capture(body=body, headers=tuple(headers), status=status, about={"meta": meta})
    written = warc_writer.encode(made, {})
    [(offset, length, response), (_, _, request)] = warc_reader.records(written.data)
    assert (offset, length) == (0, written.entry.length)
    page = warc_reader.page_of(written.entry, response)
    assert (page.answer.body, page.answer.status, page.answer.headers) == (body, status, tuple(headers))
    assert page.about["meta"] == meta
    assert warc_reader.capture_of(request) is None
    found = warc_reader.capture_of(response)
    assert (found.id, found.url, found.at, found.status) == (made.id, made.url, AT, status)


def coded(body, level=6, headers=(), **more):
    """As a server sent it."""
    headers = (("content-type", "text/html"), *headers, ("content-encoding", "gzip"))
    return capture(body=gzip.compress(body, level, mtime=0), is_coded=True, headers=headers, **more)


@given(
    body=st.binary(max_size=3000),
    level=st.integers(0, 9),
    headers=st.lists(st.tuples(_token, _value.map(str.strip)), max_size=6),
    is_chunked=st.booleans(),
)
def test_a_coded_body_is_read_back_as_it_came_and_decoded(body, level, headers, is_chunked):
    framing = ("transfer-encoding", "chunked") if is_chunked else ("content-length", "77")
    made = coded(body, level, [*headers, framing])
    written = warc_writer.encode(made, {})
    [(_, _, record), _] = warc_reader.records(written.data)
    page = warc_reader.page_of(written.entry, record)
    assert (page.answer.body, page.answer.wire, page.answer.headers) == (body, made.body, made.headers)
    assert written.entry.digest == warc_writer.digest_of(made.body)
    warc_reader.check_digest(page, record)


def test_headers_of_a_coded_body_say_what_is_stored():
    made = coded(BODY, headers=[("content-length", "7"), ("transfer-encoding", "chunked")])
    plain = gzip.decompress(warc_writer.encode(made, {}).data)
    assert b"\r\ncontent-encoding: gzip\r\n" in plain
    assert b"\r\ncontent-length: %d\r\n\r\n" % len(made.body) in plain
    assert b"x-archive-orig-content-length: 7\r\nx-archive-orig-transfer-encoding: chunked\r\n" in plain
    assert b"\r\ntransfer-encoding" not in plain


def test_a_revisit_of_a_coded_body_is_read_with_that_body():
    body = random.Random(2).randbytes(2000)
    first = warc_writer.encode(coded(body), {})
    again = warc_writer.encode(
        coded(body, id="0" * 31 + "3"), {first.entry.digest: warc_writer.First(first.entry.url, first.date)}
    )
    assert again.entry.is_revisit
    [[original, _], [revisit, _]] = [[one[2] for one in warc_reader.records(each.data)] for each in (first, again)]
    page = warc_reader.page_of(again.entry, revisit, original)
    assert (page.answer.body, page.answer.wire) == (body, gzip.compress(body, 6, mtime=0))
    warc_reader.check_digest(page, revisit)


def test_a_gzip_file_and_a_coded_page_may_have_the_same_bytes():
    """The headers of each say what it is."""
    page = coded(random.Random(3).randbytes(2000))
    file = warc_writer.encode(
        capture(id="0" * 31 + "3", body=page.body, headers=(("content-type", "application/gzip"),)), {}
    )
    again = warc_writer.encode(page, {file.entry.digest: warc_writer.First(file.entry.url, file.date)})
    [[original, _], [revisit, _]] = [[one[2] for one in warc_reader.records(each.data)] for each in (file, again)]
    assert warc_reader.page_of(file.entry, original).answer.body == page.body
    assert warc_reader.page_of(again.entry, revisit, original).answer.body == gzip.decompress(page.body)


@given(at=st.floats(0, 4e9))
def test_a_date_is_the_nearest_microsecond(at):
    assert warc_writer.date_of(at) == f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def test_coded_headers_are_renamed_and_come_back():
    headers = (("content-encoding", "gzip"), ("content-length", "7"), ("x-archive-orig-a", "b"))
    written = warc_writer.encode(capture(headers=headers), {})
    plain = gzip.decompress(written.data)
    assert b"\r\ncontent-encoding" not in plain
    assert b"x-archive-orig-content-encoding: gzip" in plain
    [(_, _, record), _] = warc_reader.records(written.data)
    assert warc_reader.page_of(written.entry, record).answer.headers == headers


def test_a_header_cannot_begin_a_new_line():
    written = warc_writer.encode(
        capture(url="https://h.test/a\r\nWARC-Type: x", headers=(("a\r\nb: c", "d\r\n\r\ne"),)), {}
    )
    [(_, _, record), _] = warc_reader.records(written.data)
    assert record.fields["warc-type"] == "response"
    assert warc_reader.page_of(written.entry, record).answer.body == BODY


@pytest.mark.parametrize("sign", [*"\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\r\n"])
def test_nothing_begins_a_new_line_in_any_reader(sign):
    odd = f"a{sign}WARC-Type: x"
    made = capture(
        url=f"https://h.test/{odd}",
        method=odd,
        request_headers=((odd, odd),),
        headers=((odd, odd), ("content-type", odd)),
        address=odd,
        about={"meta": odd},
    )
    written = warc_writer.encode(made, {})
    text = gzip.decompress(written.data).decode()
    assert not any(line.startswith("WARC-Type: x") for line in text.splitlines())
    kept = warc_writer.encode(capture(kind=CaptureKind.ARTIFACT, url=f"archive:{odd}", type=odd), {})
    text += gzip.decompress(kept.data).decode()
    assert not any(line.startswith("WARC-Type: x") for line in text.splitlines())


@pytest.mark.parametrize("status", [0, 7, 99, 999])
def test_a_status_has_three_digits(status):
    written = warc_writer.encode(capture(status=status), {})
    [(_, _, record), _] = warc_reader.records(written.data)
    assert record.block.startswith(b"HTTP/1.1 %03d " % status)
    assert warc_reader.page_of(written.entry, record).answer.status == status


def test_others_read_responses_revisits_requests_and_resources(tmp_path):
    body = random.Random(1).randbytes(2000)
    first = warc_writer.encode(capture(body=body, headers=(("content-type", "text/html"),)), {})
    known = {first.entry.digest: warc_writer.First(first.entry.url, warc_writer.date_of(AT))}
    again = warc_writer.encode(capture(id="0" * 31 + "3", url="https://shop.example/p/2", body=body), known)
    kept = warc_writer.encode(capture(id="0" * 31 + "5", kind=CaptureKind.ARTIFACT, url="archive:sha256-1/a.txt"), {})
    assert again.entry.is_revisit
    assert len(again.data) < len(first.data)
    file = tmp_path / "a.warc.gz"
    file.write_bytes(first.data + again.data + kept.data)
    assert by_warcio(file) == by_fastwarc(file) == 5


def test_others_check_and_decode_coded_bodies(tmp_path):
    body = random.Random(1).randbytes(2000)
    first = warc_writer.encode(coded(body, headers=[("transfer-encoding", "chunked")]), {})
    known = {first.entry.digest: warc_writer.First(first.entry.url, first.date)}
    again = warc_writer.encode(coded(body, id="0" * 31 + "3", url="https://shop.example/p/2"), known)
    file = tmp_path / "a.warc.gz"
    file.write_bytes(first.data + again.data)
    assert by_warcio(file) == by_fastwarc(file) == 4
    response = next(iter(ArchiveIterator(io.BytesIO(first.data))))
    assert response.content_stream().read() == body


def test_small_bodies_are_stored_again():
    body = b"x" * (warc_writer.LEAST_REVISIT - 1)
    known = {warc_writer.digest_of(body): warc_writer.First("https://shop.example/", warc_writer.date_of(AT))}
    assert not warc_writer.encode(capture(body=body), known).entry.is_revisit


def test_large_data_of_a_task_is_left_out_and_said_so():
    written = warc_writer.encode(capture(about={"meta": {"x": "y" * warc_writer.LARGEST_ABOUT}}), {})
    [(_, _, record), _] = warc_reader.records(written.data)
    about = warc_reader.about_of(record)
    assert "meta" not in about
    assert about[warc_writer.TOO_LARGE] > warc_writer.LARGEST_ABOUT

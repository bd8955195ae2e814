"""What a server may send, over a real socket: an answer or a failure with one line of reason, never an exception."""

import asyncio
import gzip
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.raw_site import fetcher, site, task
from tests.fuzz.strange import STILL_LINEAR, fuzzed, growth, mutated
from trotline.adapters.http.encodings import BadEncoding, OverLimit, undo
from trotline.model.answer import Answer, Failure
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.rules import content_types, redaction
from trotline.rules.verdicts import judge

LIMITS = Limits(total=5.0, decoded_body=1 << 20)
ZIPPED = gzip.compress(b"hello " * 100, mtime=0)
ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 302 Found\r\nLocation: //b\\c\r\nSet-Cookie: a=b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(ZIPPED), ZIPPED),
    b"HTTP/1.0 503 No\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nConnection: close\r\n\r\nsorry",
]


async def outcome_of(sent: bytes) -> Answer | Failure:
    async def reply(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()
        writer.close()

    async with site(reply) as there, fetcher(LIMITS) as ours:
        return await ours.fetch(task(there.url()))


@fuzzed
@given(
    st.one_of(
        mutated(ANSWERS), st.binary(max_size=200), st.binary(max_size=80).map(lambda rest: ANSWERS[0][:17] + rest)
    )
)
async def test_any_bytes_are_an_answer_or_a_failure(sent: bytes) -> None:
    outcome = await outcome_of(sent)
    judge(Task(url="https://a.example/", route="r"), outcome, limits=LIMITS, now=0.0)
    if isinstance(outcome, Failure):
        assert outcome.why.isprintable()
        assert len(outcome.why) <= 200
    else:
        assert not any("\n" in part or "\r" in part or "\0" in part for pair in outcome.headers for part in pair)


CODED = {
    "gzip": ZIPPED,
    "deflate": zlib.compress(b"hello " * 100),
    "br": brotli.compress(b"hello " * 100),
    "zstd": zstandard.compress(b"hello " * 100),
}


@fuzzed
@given(st.data(), st.lists(st.sampled_from([*CODED, "x", "identity"]), min_size=1, max_size=2), st.integers(0, 2_000))
def test_any_body_is_undone_within_its_room_or_refused(data: st.DataObject, chain: list[str], room: int) -> None:
    body = data.draw(st.one_of(st.binary(max_size=100), mutated(list(CODED.values()))))
    try:
        plain, notes = undo(body, chain, room)
    except (BadEncoding, OverLimit) as error:
        assert str(error)
    else:
        assert len(plain) <= max(room, len(body))
        assert all(note.isprintable() for note in notes)


@pytest.mark.parametrize(
    "piece", ["?a=", "://", "://@", "?a=http%3A//x%3Fa%3D", "&token=", "%", "a@", "://x:y@z ", " "]
)
def test_redaction_grows_with_the_length_and_no_faster(piece: str) -> None:
    assert growth(redaction.text, lambda n: f"https://a.example/{piece * n}", 1_000) < STILL_LINEAR


@pytest.mark.parametrize("piece", ["a", "a/", " ", "\t; ", ";", "text/html"])
def test_a_content_type_is_judged_in_time_that_grows_no_faster_than_it(piece: str) -> None:
    assert (
        growth(lambda kind: content_types.unwanted(kind, ("text/*", "*/*json*")), lambda n: piece * n, 5_000)
        < STILL_LINEAR
    )

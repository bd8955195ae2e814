"""A connection that judges its own rate."""

import asyncio

import pytest
from aiohttp.http_exceptions import HttpProcessingError

from trotline.adapters.http.failures import Cut
from trotline.adapters.http.limited_connection import Watchdog, WatchedConnection
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits

LIMITS = Limits()


def begun() -> tuple[WatchedConnection, float]:
    """A connection on which an answer has begun, and when."""
    loop = asyncio.get_running_loop()
    connection = WatchedConnection(loop, LIMITS, Watchdog(LIMITS))
    connection.set_response_params()
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    return connection, loop.time()


async def test_b27_time_in_which_our_own_loop_stood_still_is_not_the_sites() -> None:
    connection, now = begun()
    connection.judge_rate(now + 25, late=20)
    assert connection.exception() is None
    connection.judge_rate(now + 31, late=0)
    error = connection.exception()
    assert isinstance(error, Cut)
    assert (error.trouble, error.why) == (FailureKind.TOO_SLOW, "body under 1024 bytes a second for 11 s")


async def test_b27_a_line_that_we_do_not_read_is_not_slow() -> None:
    connection, now = begun()
    connection.pause_reading()
    connection.judge_rate(now + 25, late=0)
    connection.resume_reading()
    connection.judge_rate(now + 30, late=0)
    assert connection.exception() is None


async def test_b27_silence_after_the_question_ends_at_the_first_byte_limit() -> None:
    loop = asyncio.get_running_loop()
    connection = WatchedConnection(loop, LIMITS, Watchdog(LIMITS))
    connection.set_response_params()
    now = loop.time()
    connection.judge_rate(now + LIMITS.first_byte - 1, late=0)
    assert connection.exception() is None
    connection.judge_rate(now + LIMITS.first_byte + 1, late=0)
    error = connection.exception()
    assert isinstance(error, Cut)
    assert (error.trouble, error.why) == (FailureKind.TIMEOUT, "no answer within 30 s")


async def test_b27_a_page_may_take_its_time_after_an_interim_answer_too() -> None:
    loop = asyncio.get_running_loop()
    connection = WatchedConnection(loop, LIMITS, Watchdog(LIMITS))
    connection.set_response_params()
    connection.data_received(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
    now = loop.time()
    connection.judge_rate(now + LIMITS.first_byte - 1, late=0)
    assert connection.exception() is None
    connection.judge_rate(now + LIMITS.first_byte + 1, late=0)
    error = connection.exception()
    assert isinstance(error, Cut)
    assert (error.trouble, error.why) == (FailureKind.TIMEOUT, "no answer within 30 s")


HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na\r\n\r\nbody"
NONSENSE = b"\0\r\n\r\nHTTP/1.1 nonsense"


@pytest.mark.parametrize("before", [b"", HINT, HINT * 3, b"HTTP/1.1 100 Continue\r\n\r\n"])
@pytest.mark.parametrize("first", [0, 1, 30, 50, 130])
async def test_a_whole_answer_counts_whatever_follows_it(before: bytes, first: int) -> None:
    """Also if its head comes in two segments: the nonsense is in the second."""
    connection = WatchedConnection(asyncio.get_running_loop(), LIMITS, Watchdog(LIMITS))
    connection.set_response_params()
    # The answer's own head is not complete in the first one.
    first = min(first, len(before) + ANSWER.index(b"Content"))
    said = before + ANSWER + NONSENSE
    for segment in (said[:first], said[first:]):
        if segment:
            connection.data_received(segment)
    message, body = await asyncio.wait_for(connection.read(), 5)
    assert message.code == 200
    assert await body.read() == b"a\r\n\r\nbody"
    assert connection.should_close


async def test_more_interim_answers_than_the_limit_are_no_answer() -> None:
    connection = WatchedConnection(asyncio.get_running_loop(), LIMITS, Watchdog(LIMITS))
    connection.set_response_params()
    connection.data_received(HINT * 11 + ANSWER + NONSENSE)
    with pytest.raises((Cut, HttpProcessingError)):
        await asyncio.wait_for(connection.read(), 5)


async def test_an_idle_line_is_not_judged() -> None:
    loop = asyncio.get_running_loop()
    connection = WatchedConnection(loop, LIMITS, Watchdog(LIMITS))
    connection.judge_rate(loop.time() + 1000, late=0)
    connection.set_response_params()
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfull")
    connection.judge_rate(loop.time() + 1000, late=0)
    assert connection.exception() is None

"""A connection that judges its own rate."""

import asyncio

from trotline.adapters.http.failures import Cut
from trotline.adapters.http.line import Line, Watch
from trotline.model.answer import Trouble
from trotline.model.limits import Limits

LIMITS = Limits()


def begun() -> tuple[Line, float]:
    """A line on which an answer has begun, and when."""
    loop = asyncio.get_running_loop()
    line = Line(loop, LIMITS, Watch(LIMITS))
    line.set_response_params()
    line.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    return line, loop.time()


async def test_b27_time_in_which_our_own_loop_stood_still_is_not_the_sites() -> None:
    line, now = begun()
    line.judge_rate(now + 25, late=20)
    assert line.exception() is None
    line.judge_rate(now + 31, late=0)
    error = line.exception()
    assert isinstance(error, Cut)
    assert (error.trouble, error.why) == (Trouble.TOO_SLOW, "body under 1024 bytes a second for 11 s")


async def test_b27_a_line_that_we_do_not_read_is_not_slow() -> None:
    line, now = begun()
    line.pause_reading()
    line.judge_rate(now + 25, late=0)
    line.resume_reading()
    line.judge_rate(now + 30, late=0)
    assert line.exception() is None


async def test_b27_silence_after_the_question_ends_at_the_first_byte_limit() -> None:
    loop = asyncio.get_running_loop()
    line = Line(loop, LIMITS, Watch(LIMITS))
    line.set_response_params()
    now = loop.time()
    line.judge_rate(now + LIMITS.first_byte - 1, late=0)
    assert line.exception() is None
    line.judge_rate(now + LIMITS.first_byte + 1, late=0)
    error = line.exception()
    assert isinstance(error, Cut)
    assert (error.trouble, error.why) == (Trouble.TIMEOUT, "no answer within 30 s")


async def test_an_idle_line_is_not_judged() -> None:
    loop = asyncio.get_running_loop()
    line = Line(loop, LIMITS, Watch(LIMITS))
    line.judge_rate(loop.time() + 1000, late=0)
    line.set_response_params()
    line.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfull")
    line.judge_rate(loop.time() + 1000, late=0)
    assert line.exception() is None

"""How soon the robots.txt of a host that does not answer is asked for again."""

import asyncio
from typing import Any

import pytest

from trotline.adapters.http.robots import RobotsTxt
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits

URL = "https://shop.example/a"


class OneAnswer:
    def __init__(self, answer: Answer | Failure) -> None:
        self._answer = answer

    async def fetch_start(self, *_: object) -> Answer | Failure:
        return self._answer


def wait(answer: Answer | Failure, patience: float | None) -> float:
    fetcher: Any = OneAnswer(answer)
    robots = RobotsTxt(fetcher, agent="test", limits=Limits(), patience=patience)
    return asyncio.run(robots.ask(URL)).ask_again


@pytest.mark.parametrize(("patience", "seconds"), [(None, 60.0), (1800.0, 60.0), (60.0, 6.0)])
def test_a_host_that_does_not_answer_is_asked_again_before_it_is_given_up(patience: float | None, seconds: float):
    failure = Failure(url=URL, trouble=FailureKind.CONNECT, why="no connection")
    assert wait(failure, patience) == pytest.approx(seconds, abs=1.0)


def test_a_server_that_answers_with_an_error_is_left_in_peace_as_long_as_ever():
    assert wait(Answer(url=URL, status=503, headers=(), body=b""), 60.0) == pytest.approx(60.0, abs=1.0)

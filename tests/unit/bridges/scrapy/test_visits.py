"""What becomes of a page, by what happened to it."""

import pytest
from scrapy import Request

from trotline.bridges.scrapy.visits import Visit
from trotline.model.lease import Lease
from trotline.model.outcome import Bury
from trotline.model.task import Task


def refused(why: str, more: int) -> Bury:
    task = Task(url="https://shop.example/", route="parse")
    visit = Visit(Lease(task, 1, 0.0, 0.0, 0.0, 0.0), Request(task.url))
    visit.refused, visit.refused_more = why, more
    found = visit.settlement().outcome
    assert isinstance(found, Bury)
    return found


@pytest.mark.parametrize(("more", "end"), [(0, "a lambda"), (1, "; and 1 more request"), (6, "; and 6 more requests")])
def test_the_reason_of_the_first_request_is_kept_and_the_others_are_counted(more: int, end: str) -> None:
    why = refused("https://shop.example/p/1: callback is a lambda", more).why
    assert why.startswith("not stored: https://shop.example/p/1: ")
    assert why.endswith(end)


def test_a_long_reason_does_not_hide_how_many_there_are() -> None:
    assert refused("x" * 999, 6).why.endswith("xx; and 6 more requests")

"""An async handler that waits for ever ends with a reason, on virtual time."""

import asyncio

import pytest

from tests.unit.worker.fake_ports import DiaryFrontier, DiarySink, SlowFetcher, lease, tools
from trotline import Limits, Page, Spider
from trotline.model.outcome import Bury, Done
from trotline.testing.virtual_time import run_virtual
from trotline.worker.visit import Visitor


def visited(handler, limits: Limits | None = None):
    """The outcome of a visit, and how long it took."""
    spider = Spider("s", pace="1/s", limits=limits)
    spider.page(handler)

    async def whole():
        ports = tools(DiaryFrontier([]), DiarySink([]), SlowFetcher(0.0), spider=spider)
        began = asyncio.get_running_loop().time()
        visit = await Visitor(spider, ports).visit(lease(7))
        await asyncio.sleep(0)
        return visit.outcome, asyncio.get_running_loop().time() - began, ports.marker.suspect

    return run_virtual(whole())


@pytest.mark.parametrize(("limits", "seconds"), [(None, 60.0), (Limits(handler=2.5), 2.5)])
def test_a_handler_that_waits_for_ever_is_ended_by_the_limit_that_its_grave_names(limits, seconds):
    async def page(page: Page):
        await asyncio.Event().wait()
        yield {"never": 1}

    outcome, took, suspect = visited(page, limits)

    assert isinstance(outcome, Bury)
    assert outcome.why.startswith(f"handler: took longer than {seconds:g} s (Limits.handler;")
    assert took == pytest.approx(seconds, abs=0.1)
    assert suspect is None


def test_a_handler_that_catches_everything_is_ended_too():
    async def page(page: Page):
        while True:
            try:
                await asyncio.Event().wait()
            except BaseException as error:
                if isinstance(error, GeneratorExit):
                    raise

    outcome, took, _ = visited(page)

    assert isinstance(outcome, Bury)
    assert took < 70


def test_a_handler_that_waits_for_less_is_left_alone():
    async def page(page: Page):
        await asyncio.sleep(59)

    assert visited(page)[0] == Done()


def test_what_a_handler_raises_by_itself_is_not_taken_for_the_limit():
    async def page(page: Page):
        raise TimeoutError("the database")

    outcome, _, _ = visited(page)

    assert outcome.why.startswith("handler: TimeoutError at ")
    assert "the database" in outcome.detail

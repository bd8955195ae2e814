"""Every argument of the front door with every odd value: taken, or refused with a reason that helps."""

import pytest

from tests.contract.odd_values import VALUES, cases, give
from tests.unit.worker.fake_ports import HTML, DiaryFrontier, DiarySink, lease, tools
from trotline import Page, Spider
from trotline.errors import SpiderRefused
from trotline.model import task_json
from trotline.model.answer import Answer
from trotline.model.outcome import Bury, Done
from trotline.model.record_row import Unstorable, row_of
from trotline.testing.virtual_time import run_virtual
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.visit import Visitor


class Once:
    async def fetch(self, task, way=None):
        return Answer(url=task.url, status=200, headers=HTML, body=b'<h1>page</h1><a href="/child">child</a>')


def visited(handler) -> FinishedVisit:
    """What becomes of a page that is read by this handler."""
    spider = Spider("s", robots=False, hosts=["h.test"])
    spider.page(key="name", name="page")(handler)
    ports = tools(DiaryFrontier([]), DiarySink([]), Once(), spider=spider)
    return run_virtual(Visitor(spider, ports).visit(lease(1)))


@pytest.mark.slow("three thousand visits: every place with every value")
def test_whatever_a_handler_gives_ends_in_something_that_can_be_kept():
    for place, value in cases():

        def page(page: Page, place=place, value=value):
            yield {"name": "first"}
            yield give(page, place, value)

        ended = visited(page)
        case = f"{place} = {value}"
        if isinstance(ended.outcome, Bury):
            assert ended.outcome.why.startswith("handler: "), case
            assert "odd_values.py:" in ended.outcome.why, case
        else:
            assert ended.outcome == Done(), case
            assert ended.records[0].data == {"name": "first"}, case
        settlement = ended.settlement()
        for task in settlement.children:
            kept = task_json.encode(task)
            assert task_json.decode(kept).url == task.url, case
            assert -1_000_000 <= task.priority <= 1_000_000, case
        for record in ended.records:
            try:
                row_of(record)
            except Unstorable:
                # A sink says so of one record, and stores the others.
                assert "nested" in value, case
        for reject in settlement.rejects:
            assert reject.why.encode() and reject.data.encode() and reject.kind.encode(), case


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (
            lambda page: page.follow("a", priority="20"),
            "priority of follow is '20'; give an integer from -1,000,000 to 1,000,000",
        ),
        (lambda page: page.task("/b", priority=2**63), "a task's priority is 9223372036854775808; give an integer"),
        (
            lambda page: page.task("/b", lane=7),
            "a task's lane is 7; give text in one line, at most 1,000 bytes in UTF-8",
        ),
        (lambda page: page.task("/b", meta={1: 2}), "a task's meta is {1: 2}; give a dict of plain values"),
        (lambda page: page.task("/b", body=10**12), "a task's body is 1000000000000; give bytes, or text"),
        (lambda page: page.task("/b", meta={"a": "x" * 2_000_000}), "100 deep, 1,048,576 bytes in all"),
        (lambda page: page.task("/b", body=b"x" * 2_000_000), "give bytes, or text, at most 1,048,576 bytes"),
        (lambda page: page.task("/b", json=["x"] * 500_000), "give bytes, or text, at most 1,048,576 bytes"),
        (lambda page: page.task(17), "the link of a task is 17; give a URL as text"),
        (lambda page: page.follow("a", to=17), "to is 17; give a route, or its name"),
    ],
)
def test_a_refusal_names_the_argument_the_value_the_range_and_the_line(give, said):
    def page(page: Page):
        yield give(page)

    line = give.__code__.co_firstlineno
    outcome = visited(page).outcome

    assert isinstance(outcome, Bury)
    assert said in outcome.detail
    assert f"at test_odd_values.py:{line} in <lambda>" in outcome.why


def test_an_odd_record_is_rejected_alone_with_the_line_that_gave_it():
    def page(page: Page):
        yield page.record("thing", 17, {"a": 1})
        yield page.record("thing", ["k"], {"a": 1})
        yield page.record(None, "k", {"a": 1})
        yield page.record("thing", "k", "text")

    ended = visited(page)

    assert [record.key for record in ended.records] == ["17"]
    first = page.__code__.co_firstlineno
    assert [reject.why for reject in ended.rejects] == [
        f"key is ['k']; give text or a number, at test_odd_values.py:{first + 2} in page",
        f"kind is None; give text, from 1 to 8,192 characters, at test_odd_values.py:{first + 3} in page",
        f"data is 'text'; give a dict, at test_odd_values.py:{first + 4} in page",
    ]


SPIDER = [
    "name", "pace", "lanes", "concurrency", "slowest", "retries", "pool", "hosts", "include", "exclude", "max_depth",
    "max_pages", "headers", "cookies", "redact", "robots", "user_agent", "insecure_hosts", "types", "urls", "traps",
    "limits", "blocked", "give_up", "schedule", "timezone", "overlap",
]  # fmt: skip
ROUTE = ["seeds", "sitemap", "key", "model", "priority", "name", "status", "conditional"]


@pytest.mark.parametrize("argument", SPIDER)
def test_a_spider_takes_an_odd_setting_or_refuses_it(argument):
    for name, make in VALUES.items():
        try:
            Spider(**{"name": "s", argument: make()})
        except SpiderRefused as refused:
            assert refused.hint, (argument, name)


@pytest.mark.parametrize("argument", ROUTE)
def test_a_route_takes_an_odd_setting_or_refuses_it(argument):
    for name, make in VALUES.items():
        spider = Spider("s")
        try:
            spider.page(**{argument: make()})(lambda page: None)
            list(spider.seeds())
        except SpiderRefused as refused:
            assert refused.hint or "seeds" in refused.what, (argument, name)

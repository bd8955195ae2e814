"""Hooks: what they get, what they may return, and what becomes of an error."""

import dataclasses

import pytest

from tests.unit.spider.test_page import page_of
from trotline import Drop, HandlerFailed, Page, Request, Spider
from trotline.errors import SpiderBroken, SpiderRefused
from trotline.model.task import Task
from trotline.spider import hook_calls
from trotline.spider.hooks import WorkerHandle
from trotline.testing import visit

TASK = Task(url="https://shop.example/p", route="page", headers=(("If-None-Match", '"1"'),), meta={"a": 1})


def items(*yielded, key=None, model=None) -> tuple[Spider, object]:
    spider = Spider("s")

    @spider.page(key=key, model=model)
    def page(page: Page):
        yield from yielded
        yield page.task("/next")

    return spider, page


def test_record_hooks_run_in_the_order_of_the_code_and_change_drop_and_split():
    spider, page = items({"n": "1"}, {"n": "2"}, {"n": "3"})

    @spider.record
    def number(record):
        record["n"] = int(record["n"])

    @spider.record
    def odd(record, page):
        return Drop("even") if record["n"] % 2 == 0 else {**record, "url": page.url}

    @spider.record
    def twice(record):
        yield record
        if record["n"] == 3:
            yield {"n": 30}
            yield Drop("thirty one")

    harvest = visit(page, "<p>")

    assert [record.data["n"] for record in harvest.records] == [1, 3, 30]
    assert harvest.records[0].data["url"] == "https://example.com/"
    assert harvest.dropped == {"even (odd)": 1, "thirty one (twice)": 1}
    assert len({record.key for record in harvest.records}) == 3
    assert len(harvest.tasks) == 1, "tasks do not pass record hooks"


def test_the_record_of_a_download_does_not_pass_record_hooks():
    """No handler gave it: a hook for products would bury every picture."""
    spider = Spider("s", files="pictures")

    @spider.record
    def price(record):
        record["price"] = float(record["price"])

    [record] = visit(spider.route("file"), "<svg/>").records
    assert (record.kind, record.data["size"]) == ("file", 6)


def test_a_record_is_validated_and_gets_its_key_after_the_hooks():
    @dataclasses.dataclass
    class Product:
        sku: str
        price: float

    spider, page = items({"sku": " T1 ", "price": "1.50 EUR"}, key="sku", model=Product)

    @spider.record
    def clean(record):
        record["sku"] = record["sku"].strip()
        record["price"] = record["price"].removesuffix(" EUR")

    [record] = visit(page, "<p>").records
    assert (record.key, record.data, record.kind) == ("T1", {"sku": "T1", "price": 1.5}, "product")


@pytest.mark.parametrize("given", ["text", 17, True, [Task(url="https://x.example/", route="page")]])
def test_what_is_no_record_names_the_hook(given):
    spider, page = items({"n": 1})

    @spider.record
    def clean(record):
        return given

    with pytest.raises(HandlerFailed, match=r"record hook clean: TypeError: it (returned|gave)") as error:
        visit(page, "<p>")
    assert error.value.group.startswith("record hook clean: TypeError at ")


async def test_a_request_can_be_given_headers_and_a_body_and_nothing_else():
    spider = Spider("s")

    @spider.before_request
    def sign(request: Request):
        request.headers["X-Sign"] = f"{request.method} {request.url} {request.meta['a']}"
        request.headers["if-none-match"] = '"2"'

    @spider.before_request
    async def fill(request: Request):
        request.body = b"x"

    task = await hook_calls.before_request_async(spider.hooks.before_request, TASK)

    assert isinstance(task, Task)
    assert task.headers == (("if-none-match", '"2"'), ("X-Sign", "GET https://shop.example/p 1"))
    assert (task.body, task.url, task.lane) == (b"x", TASK.url, TASK.lane)
    for name in ("url", "method", "route", "meta"):
        with pytest.raises(AttributeError):
            setattr(Request(TASK), name, "x")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("Host", "10.0.0.1", "belong"),
        ("Transfer-Encoding", "chunked", "belong"),
        ("Proxy-Authorization", "x", "belong"),
        ("X", "a\r\nHost: b", ""),
        ("X", None, "is not text"),
    ],
)
async def test_headers_of_the_client_and_line_breaks_bury_the_task(name, value, said):
    spider = Spider("s")

    @spider.before_request
    def wrong(request):
        request.headers[name] = value

    with pytest.raises(HandlerFailed, match="before_request hook wrong: ") as error:
        await hook_calls.before_request_async(spider.hooks.before_request, TASK)
    assert said in str(error.value)
    line = spider.hooks.before_request[0].function.__code__.co_firstlineno + 2
    assert str(error.value).endswith(f" at test_hooks.py:{line} in wrong"), "the line that sets it"


async def test_a_request_and_a_page_can_be_dropped_with_a_reason():
    spider = Spider("s")

    @spider.before_request
    def no_night(request):
        return Drop("closed at\n night")

    @spider.after_answer
    def in_stock(page):
        return Drop("sold out") if page.css(".sold-out") else None

    assert await hook_calls.before_request_async(spider.hooks.before_request, TASK) == "closed at night (no_night)"
    assert hook_calls.before_request(spider.hooks.before_request, TASK) == "closed at night (no_night)"
    assert hook_calls.after_answer(spider.hooks.after_answer, page_of("<p class=sold-out>")) == "sold out (in_stock)"


def test_a_page_can_be_given_another_body():
    spider = Spider("s")

    @spider.after_answer
    def decoded(page: Page):
        assert page.css("p::text").get() == "olleh"
        return page.with_body(page.text.replace("olleh", "hello"))

    @spider.page
    def read(page: Page):
        yield {"said": page.css("p::text").get(), "x": page.xpath("//p/text()").get()}

    assert visit(read, "<p>olleh</p>").records[0].data == {"said": "hello", "x": "hello"}


async def test_an_error_at_the_start_ends_the_worker_and_one_at_the_end_is_logged(caplog):
    spider = Spider("s")
    said = []

    @spider.on_start
    def count():
        said.append("start")

    @spider.on_start
    async def connect(worker: WorkerHandle):
        said.append(worker.job)
        raise OSError("no database")

    @spider.on_finish
    def report(worker: WorkerHandle):
        said.append(worker.ended)
        raise OSError("no network")

    with pytest.raises(SpiderBroken, match=r"on_start hook connect: OSError: no database at test_hooks\.py"):
        await hook_calls.on_start(spider.hooks.on_start, WorkerHandle("s-1", "w"))
    await hook_calls.on_finish(spider.hooks.on_finish, WorkerHandle("s-1", "w", "finished"))

    assert said == ["start", "s-1", "finished"]
    assert "hook.failed on_finish hook report: OSError: no network" in caplog.text


def test_what_cannot_be_a_hook_is_refused_when_the_file_is_loaded():
    spider = Spider("s")
    with pytest.raises(SpiderRefused, match="is not a function"):
        spider.record(17)
    with pytest.raises(SpiderRefused, match="does not take"):
        spider.after_answer(lambda: None)
    with pytest.raises(SpiderRefused, match="is async"):

        @spider.record
        async def clean(record):
            pass

    with pytest.raises(ValueError, match="says no reason"):
        Drop(" ")

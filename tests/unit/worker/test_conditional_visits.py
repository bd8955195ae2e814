"""Visits that ask only for what has changed; when pages are remembered; and pages that cannot be kept as they are."""

import asyncio

import msgspec
import pytest

from tests.unit.worker.fake_ports import HTML, Diary, DiaryFrontier, DiarySink, SlowFetcher, lease, tools
from trotline import Page, Spider
from trotline.errors import SpiderRefused, ValidatorsUnreachable
from trotline.model.answer import Answer
from trotline.model.http_validator import Validator
from trotline.model.job import Job
from trotline.model.lease import Settled
from trotline.model.outcome import Bury, Done, Snooze
from trotline.model.task import Task
from trotline.rules.conditional_requests import page_of
from trotline.testing.clients import sqlite_client
from trotline.testing.virtual_time import run_virtual
from trotline.worker.commit import Committer
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.visit import Visitor
from trotline.worker.worker_settings import WorkerPolicy

ETAG = '"v1"'
LEASE = lease(1)


class DiaryValidators:
    def __init__(self, diary: Diary, known=None, *, away: bool = False) -> None:
        self._diary = diary
        self.known: dict[int, Validator] = dict(known or {})
        self.away = away

    async def recall(self, page: int):
        self._diary.append(("recall", page))
        if self.away:
            raise ValidatorsUnreachable("locked")
        return self.known.get(page)

    async def remember(self, seen):
        if self.away:
            raise ValidatorsUnreachable("locked")
        self._diary.append(("remember", [page for page, _ in seen]))
        self.known.update(seen)

    async def close(self):
        return


def spider(*, conditional: bool = True, gives=None) -> Spider:
    made = Spider("s", robots=False, hosts=["h.test"])

    @made.page(key="name", conditional=conditional)
    def page(page: Page):
        yield from gives(page) if gives else [{"name": page.css("h1::text").get()}]

    return made


def shop(task: Task) -> Answer:
    if ("If-None-Match", ETAG) in task.headers:
        return Answer(url=task.url, status=304)
    return Answer(url=task.url, status=200, headers=(*HTML, ("etag", ETAG)), body=b"<h1>tea</h1>")


def visited(made: Spider, validators, *, answer=shop, one=LEASE) -> tuple[FinishedVisit, SlowFetcher]:
    fetcher = SlowFetcher(0.1, answer)
    ports = tools(DiaryFrontier([]), DiarySink([]), fetcher, spider=made, validators=validators)
    return run_virtual(Visitor(made, ports).visit(one)), fetcher


# Asking


def test_a_page_that_is_new_is_fetched_whole_and_can_be_asked_about_later():
    visit, fetcher = visited(spider(), DiaryValidators([]))

    assert fetcher.asked == [LEASE.task]
    assert visit.seen == (page_of(LEASE.task), Validator(ETAG))


def test_a_page_that_has_not_changed_is_done_without_a_parse():
    def gives(page):
        raise AssertionError("there is nothing to read")

    visit, fetcher = visited(spider(gives=gives), DiaryValidators([], {page_of(LEASE.task): Validator(ETAG)}))

    assert fetcher.asked[0].headers == (("If-None-Match", ETAG),)
    assert visit.outcome == Done(why="unchanged: 304")
    assert (visit.records, visit.seen) == ([], None)


def test_a_page_that_has_changed_is_read_again():
    visit, _ = visited(spider(), DiaryValidators([], {page_of(LEASE.task): Validator('"v0"')}))

    assert visit.outcome == Done()
    assert visit.seen == (page_of(LEASE.task), Validator(ETAG))


def test_a_page_that_leads_to_others_is_read_whole_next_time():
    def links(page):
        yield {"name": "tea"}
        yield page.task("/next")

    def follows(page):
        yield {"name": "tea"}
        yield page.follow("a")

    def leads(task):
        return Answer(url=task.url, status=200, headers=(*HTML, ("etag", ETAG)), body=b"<a href=/next>next</a>")

    for gives in (links, follows):
        visit, _ = visited(spider(gives=gives), DiaryValidators([]), answer=leads)
        assert visit.records
        assert visit.seen is None


def test_a_route_that_does_not_ask_for_it_looks_nothing_up():
    diary: Diary = []
    visit, fetcher = visited(spider(conditional=False), DiaryValidators(diary))

    assert (diary, fetcher.asked, visit.seen) == ([], [LEASE.task], None)


def test_without_validators_a_conditional_route_fetches_whole_pages():
    visit, fetcher = visited(spider(), None)

    assert (fetcher.asked, visit.seen) == ([LEASE.task], None)


def test_validators_that_are_away_cost_only_a_whole_fetch():
    visit, fetcher = visited(spider(), DiaryValidators([], away=True))

    assert (fetcher.asked, visit.outcome) == ([LEASE.task], Done())


def test_a_condition_does_not_travel_along_a_redirect():
    def away(task):
        return Answer(url=task.url, status=302, headers=(("location", "/elsewhere"),))

    visit, fetcher = visited(spider(), DiaryValidators([], {page_of(LEASE.task): Validator(ETAG)}), answer=away)

    assert fetcher.asked[0].headers != ()
    assert isinstance(visit.outcome, Snooze)
    assert visit.outcome.task is not None
    assert visit.outcome.task.headers == ()


def test_what_was_seen_after_a_redirect_belongs_to_where_it_was_seen():
    moved = msgspec.structs.replace(LEASE.task, url="http://h.test/elsewhere", hops=1)
    visit, _ = visited(spider(), DiaryValidators([]), one=msgspec.structs.replace(LEASE, task=moved))

    assert visit.seen is not None
    assert visit.seen[0] == page_of(moved) != page_of(LEASE.task)


@pytest.mark.parametrize(
    "gives", [lambda page: [], lambda page: [{"no name": 1}], lambda page: [{"name": "a"}, {"x": 1}]]
)
def test_a_page_without_good_rows_is_read_again_next_time(gives):
    visit, _ = visited(spider(gives=gives), DiaryValidators([]))

    assert visit.outcome == Done()
    assert visit.seen is None


@pytest.mark.parametrize("given", [1, "yes", None])
def test_the_word_is_true_or_false(given):
    with pytest.raises(SpiderRefused, match="route 'page': conditional is"):
        spider(conditional=given)


# Remembering


def committed(*visits: FinishedVisit, stale=(), frontier_away=0, validators_away=False) -> tuple[Diary, Committer]:
    diary: Diary = []
    frontier = DiaryFrontier(diary, stale=stale, away=frontier_away)
    validators = DiaryValidators(diary, away=validators_away)
    ports = tools(frontier, DiarySink(diary), validators=validators)

    async def story():
        committer = Committer("w", ports, WorkerPolicy(batch=4), set())
        running = asyncio.create_task(committer.run())
        for one in visits:
            committer.add(one)
        await asyncio.sleep(0.5)
        before = list(diary)
        await asyncio.sleep(60)
        committer.close()
        await running
        return before, committer

    before, committer = run_virtual(story())
    return (before if frontier_away else diary), committer


def seen(token: int) -> FinishedVisit:
    return FinishedVisit(lease=lease(token), outcome=Done(), seen=(token, Validator(ETAG)))


def test_pages_are_remembered_after_their_settle():
    diary, _ = committed(seen(1), seen(2))

    assert diary == [("settle", [1, 2]), ("remember", [1, 2])]


def test_a_page_whose_settle_was_refused_is_not_remembered():
    """Somebody else has it now, and reads it whole."""
    diary, committer = committed(seen(1), seen(2), stale=[1])

    assert diary[-1] == ("remember", [2])
    assert committer.stale == 1


def test_while_the_frontier_is_away_nothing_is_remembered():
    """If it were, and the worker died now, the second visit would be answered "unchanged": its links would be lost."""
    diary, _ = committed(seen(1), frontier_away=3)

    assert diary == []


def test_validators_that_are_away_hold_nobody_back():
    diary, committer = committed(seen(1), validators_away=True)

    assert diary == [("settle", [1])]
    assert committer.held_back == ""


# Pages that could not be kept


@pytest.mark.parametrize(
    "meta", [{"x": object()}, {"x": "\ud800"}, {"x": 2**70}], ids=["object", "surrogate", "integer"]
)
def test_a_task_that_cannot_be_kept_buries_the_page_that_made_it(meta):
    def gives(page):
        yield page.task("/next", meta=meta)

    visit, _ = visited(spider(gives=gives), None)

    assert isinstance(visit.outcome, Bury)
    assert visit.outcome.why.startswith("handler: InvalidValue at test_conditional_visits.py:")
    assert visit.outcome.detail.startswith("InvalidValue: a task's meta is {'x': ")
    assert visit.links.tasks == []


@pytest.mark.parametrize(
    "gives",
    [
        lambda page: [{}["no \ud800 such"]],
        lambda page: (_ for _ in ()).throw(ValueError("price \ud800 is none")),
        lambda page: [{"name": None, "text": "\ud800"}],
        lambda page: [{"\ud800": 1}],
    ],
    ids=["KeyError", "ValueError", "reject", "reject by name"],
)
def test_whatever_a_page_makes_a_handler_say_can_be_settled(gives):
    visit, _ = visited(spider(gives=gives), None)

    async def settle():
        frontier = sqlite_client(":memory:", Job(id="s-1", spider="s", started_at=0.0), inline=True)
        try:
            await frontier.put([LEASE.task])
            [held] = await frontier.lease("w", 1)
            return await frontier.settle("w", [msgspec.structs.replace(visit, lease=held).settlement()])
        finally:
            await frontier.close()

    assert asyncio.run(settle()) == [Settled.OK]

"""Visits with an account: what is saved for the next holder, and which pages are never read."""

from typing import Any

import msgspec

from tests.unit.worker.account_bench import (
    ANNA,
    LANE,
    POOL,
    SEEN,
    Browser,
    Sessions,
    Ways,
    account_spider,
    answers,
    leased,
    shop,
    stored,
    visit,
    why,
    with_login,
)
from tests.unit.worker.fake_ports import HTML
from trotline import LoginSession, Page, Spider
from trotline.model.account import Account, Session
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.lease import Lease
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.proxy_pool import MemberResult
from trotline.model.secret import Secret
from trotline.model.task import Task
from trotline.ports import send_deadline
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules import account_sessions
from trotline.worker.finished_visit import FinishedVisit


def test_a_page_is_read_with_the_cookies_and_the_proxy_of_its_account() -> None:
    frontier, fetcher = Sessions(stored(moves=1, proxy=2)), Browser(shop)

    done = visit(with_login(), frontier, fetcher)

    assert isinstance(done.outcome, Done)
    assert [each.data for each in done.records] == [{"name": "http://h.test/p", "by": "anna"}]
    assert (fetcher.ways, [task.session for task in fetcher.asked]) == (["two:3128"], [f"{POOL}/anna"])
    assert fetcher.jars[f"{POOL}/anna"] == SEEN
    assert frontier.saves == 0, "nothing of the session has changed"


def test_a_redirect_to_the_login_page_says_logged_out_by_itself() -> None:
    def moved(task: Task) -> Answer:
        return Answer(url=task.url, status=302, headers=(*HTML, ("location", "/account/login?next=/p")), body=b"")

    frontier = Sessions(stored())

    assert why(visit(with_login(), frontier, Browser(moved))) == "logged out: redirected to a login page"
    assert not frontier.session.logged_in


def test_nothing_is_fetched_with_an_account_that_another_worker_has() -> None:
    fetcher = Browser(shop)

    done = visit(with_login(), Sessions(None), fetcher)

    assert (why(done), fetcher.asked) == ("its account is held by another worker", [])


def test_a_page_whose_lease_was_lost_meanwhile_is_not_stored() -> None:
    def with_cookie(task: Task) -> Answer:
        return msgspec.structs.replace(shop(task), headers=(*HTML, ("set-cookie", "sid=2; Path=/")))

    done = visit(with_login(), Sessions(stored(), lost_at_save=True), Browser(with_cookie))

    assert (why(done), done.records) == ("its account is held by another worker", [])


def test_a_worker_that_was_frozen_sends_nothing(monkeypatch: Any) -> None:
    real = send_deadline.clock
    late = [0.0]
    monkeypatch.setattr(send_deadline, "clock", lambda: real() + late[0])

    class Frozen(Sessions):
        async def read_session(self, worker: str, lease: Lease) -> bytes | None:
            late[0] = DEAD_AFTER + 1
            return await super().read_session(worker, lease)

    fetcher = Browser(shop)
    done = visit(with_login(), Frozen(stored()), fetcher)

    assert (why(done), fetcher.asked) == ("its account is held by another worker", [])


def test_a_session_of_another_password_is_not_used() -> None:
    frontier, fetcher = Sessions(stored(login="of the old password")), Browser(shop)

    assert why(visit(with_login(), frontier, fetcher)) == "logged in"


def test_a_proxy_that_fails_is_left() -> None:
    def broken(task: Task) -> Failure:
        return Failure(url=task.url, trouble=FailureKind.PROXY, why="authentication failed", proxy="one:3128")

    frontier = Sessions(stored())
    done = visit(with_login(), frontier, Browser(broken))

    assert done.member is MemberResult.FAULT
    assert frontier.session.moves == 1


def test_the_session_is_saved_when_the_frontier_is_back() -> None:
    frontier = Sessions(away=3)

    assert why(visit(with_login(), frontier, Browser(shop))) == "logged in"
    assert frontier.session.logged_in


def test_without_a_proxy_of_its_pool_the_account_waits() -> None:
    fetcher = Browser(shop)

    done = visit(with_login(), Sessions(), fetcher, ways=Ways(proxies=()))

    assert (why(done), fetcher.asked) == ("its account has no proxy at the moment", [])


def test_links_of_one_account_can_stay_with_it() -> None:
    spider = Spider("s", robots=False, hosts=["h.test"], pool=POOL)
    spider.login(POOL)(lambda session: True)

    @spider.page
    def page(page: Page):  # type: ignore[no-untyped-def]
        yield page.task("/orders", pool=page.pool)
        yield page.task("/orders")

    done = visit(spider, Sessions(stored()), Browser(shop), lease=leased(pool=f"{POOL}/anna"))

    assert [(task.lane, task.pool) for task in done.links.tasks] == [
        (f"h.test via {POOL}/anna", f"{POOL}/anna"),
        (LANE, POOL),
    ]
    assert len({task.fingerprint for task in done.links.tasks}) == 2


def test_a_block_is_tried_through_the_next_proxy_before_the_account_rests() -> None:
    frontier, fetcher = Sessions(stored()), Browser(answers(403, "Forbidden"))

    first = visit(with_login(), frontier, fetcher)
    second = visit(with_login(), frontier, fetcher)

    assert (first.member, second.member) == (MemberResult.UNCLEAR, MemberResult.BLOCKED)
    assert fetcher.ways == ["one:3128", "two:3128"]


def test_an_account_without_proxies_rests_at_once() -> None:
    direct = msgspec.structs.replace(ANNA, proxies="direct")

    assert (
        visit(with_login(), Sessions(stored()), Browser(answers(403)), ways=Ways(direct)).member is MemberResult.BLOCKED
    )


def test_a_login_page_that_is_broken_costs_the_account_nothing_and_gets_no_password() -> None:
    async def log_in(session: LoginSession) -> bool:
        page = await session.get("http://h.test/login")
        await session.post(page.url, form={"password": session.password})
        return False

    fetcher = Browser(answers(503))
    done = visit(with_login(log_in), Sessions(), fetcher)

    assert done.member is MemberResult.GOOD, "the site answered"
    assert [task.method for task in fetcher.asked] == ["GET"]


def test_a_redirect_to_the_login_page_counts_beside_a_selector() -> None:
    frontier = Sessions(stored())
    done = visit(with_login(logged_out="form.login"), frontier, Browser(answers(302, location="/login")))

    assert why(done) == "logged out: redirected to a login page"


def test_a_function_decides_alone_what_is_logged_out() -> None:
    seen = list[int]()

    def never(page: Page) -> bool:
        seen.append(page.status)
        return False

    done = visit(with_login(logged_out=never), Sessions(stored()), Browser(answers(302, location="/login")))

    assert (why(done), seen) == ("moved", [302])


def test_a_page_that_was_redirected_and_is_logged_out_goes_back_to_its_first_url() -> None:
    spider = with_login(logged_out="form.login")
    moved = visit(spider, Sessions(stored()), Browser(answers(302, location="/members")), lease=leased())
    assert isinstance(moved.outcome, Snooze)
    assert moved.outcome.task is not None
    hop = msgspec.structs.replace(leased(), task=moved.outcome.task)
    assert (hop.task.url, hop.task.first_url) == ("http://h.test/members", "http://h.test/p")

    ended = visit(spider, Sessions(stored()), Browser(answers(200, "<form class=login></form>")), lease=hop)

    assert isinstance(ended.outcome, Snooze)
    assert ended.outcome.task == msgspec.structs.replace(leased().task, blocked_by=(leased().member,))


def test_a_session_that_the_site_has_ended_much_later_is_renewed() -> None:
    def never(task: Task) -> Answer:
        return Answer(url=task.url, status=401, headers=HTML, body=b"")

    done = visit(with_login(), Sessions(stored(proved=False, logged_in_at=100.0)), Browser(never))

    assert why(done) == "logged out: status 401"


def test_a_page_that_says_logged_out_is_not_read_and_the_next_visit_logs_in() -> None:
    def login_page(task: Task) -> Answer:
        return Answer(url=task.url, status=200, headers=HTML, body=b"<form class=login></form>")

    frontier = Sessions(stored())
    done = visit(with_login(logged_out="form.login"), frontier, Browser(login_page))

    assert (why(done), done.records) == ("logged out: it has form.login", [])
    assert isinstance(done.outcome, Snooze)
    assert done.outcome.task is not None
    assert done.outcome.task.blocked_by == (done.lease.member,)
    assert done.member is MemberResult.GOOD, "the site answered"
    assert frontier.saves == 1
    assert frontier.session == Session(login=ANNA.fingerprint, proxy=1)


def test_sessions_without_a_login_keep_their_cookies() -> None:
    slot = Account(pool=POOL, name="1", user="", password=Secret(""), proxies="direct")

    def with_cookie(task: Task) -> Answer:
        return msgspec.structs.replace(shop(task), headers=(*HTML, ("set-cookie", "cart=2; Path=/")))

    frontier, fetcher = Sessions(), Browser(with_cookie)
    done = visit(account_spider(), frontier, fetcher, ways=Ways(slot))

    assert isinstance(done.outcome, Done)
    assert fetcher.ways == ["direct"]
    saved = account_sessions.decoded(frontier.state or b"", slot.fingerprint)
    assert [cookie.header for cookie in saved.cookies] == ["cart=2; Path=/"]


def test_a_form_that_was_redirected_to_a_login_page_is_not_sent_again() -> None:
    task = msgspec.structs.replace(leased().task, url="http://h.test/members", hops=1)

    done = visit(
        with_login(logged_out="form.login"),
        Sessions(stored()),
        Browser(answers(200, "<form class=login></form>")),
        lease=msgspec.structs.replace(leased(), task=task),
    )

    assert isinstance(done.outcome, Bury)
    assert done.outcome.why == "session: logged out after a redirect"


def test_a_page_that_says_logged_out_after_a_new_login_is_charged_itself() -> None:
    login_page = answers(200, "<form class=login></form>")
    task = msgspec.structs.replace(leased().task, blocked_by=(leased().member,), retries=1)
    frontier = Sessions(stored(proved=False, logged_in_at=990.0))

    def again(attempt: int) -> FinishedVisit:
        each = msgspec.structs.replace(leased(), task=msgspec.structs.replace(task, attempt=attempt))
        return visit(with_login(logged_out="form.login"), frontier, Browser(login_page), lease=each)

    retried, buried = again(0), again(1)

    assert isinstance(retried.outcome, Retry)
    assert isinstance(buried.outcome, Bury)
    assert frontier.session.logged_in, "the session of the account goes on"
    assert retried.member is MemberResult.GOOD

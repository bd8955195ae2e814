"""Logins of accounts: when they are tried, and who is charged when they fail."""

import asyncio

from tests.unit.worker.account_bench import (
    POOL,
    Browser,
    Sessions,
    Ways,
    account_spider,
    answers,
    shop,
    stored,
    visit,
    why,
    with_login,
)
from tests.unit.worker.fake_ports import HTML
from trotline import LoginSession
from trotline.model.account import Account, Session
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.outcome import Bury, Done
from trotline.model.proxy_pool import MemberResult
from trotline.model.secret import Secret
from trotline.model.task import Task
from trotline.rules import account_sessions


def test_an_account_without_a_session_logs_in_first_and_its_task_waits() -> None:
    frontier, fetcher = Sessions(), Browser(shop)

    first = visit(with_login(), frontier, fetcher)
    assert (why(first), first.member, first.records) == ("logged in", MemberResult.UNUSED, [])
    assert frontier.session.logged_in
    assert [cookie.header for cookie in frontier.session.cookies] == ["sid=1; Path=/"]

    second = visit(with_login(), frontier, fetcher)
    assert isinstance(second.outcome, Done)
    assert frontier.session.proved
    assert [task.url for task in fetcher.asked] == ["http://h.test/login", "http://h.test/p"]


def test_a_rejected_login_rests_the_account_and_costs_the_page_nothing() -> None:
    wrong = Account(pool=POOL, name="anna", user="a", password=Secret("old"), proxies="residential")

    frontier = Sessions(account_sessions.encoded(Session(login=wrong.fingerprint))[0])
    done = visit(with_login(), frontier, Browser(shop), ways=Ways(wrong))

    assert done.member is MemberResult.BLOCKED
    assert why(done) == "login rejected: the login handler returned False (last answer: 200 of POST /login)"
    assert done.settlement().tallies["logins rejected: @buyers"] == 1


def test_a_login_handler_that_raises_rests_the_account_and_loses_no_page() -> None:
    def log_in(session: LoginSession) -> bool:
        raise KeyError("token")

    done = visit(with_login(log_in), Sessions(stored(logged_in=False)), Browser(shop))

    assert why(done).startswith("login failed: KeyError")
    assert done.member is MemberResult.BLOCKED


def test_a_login_without_an_answer_is_not_the_fault_of_the_account() -> None:
    def unreachable(task: Task) -> Failure:
        return Failure(url=task.url, trouble=FailureKind.CONNECT, why="connection refused")

    done = visit(with_login(), Sessions(), Browser(unreachable))

    assert done.member is MemberResult.UNCLEAR


def test_a_login_after_which_no_page_can_be_read_rests_the_account() -> None:
    def never(task: Task) -> Answer:
        return Answer(url=task.url, status=401, headers=HTML, body=b"")

    done = visit(with_login(), Sessions(stored(proved=False, logged_in_at=950.0)), Browser(never))

    assert (why(done), done.member) == ("login does not last: status 401", MemberResult.BLOCKED)


def test_logins_keep_the_pace_of_the_spider() -> None:
    moments = list[float]()

    async def slowly(session: LoginSession) -> bool:
        for _ in range(3):
            await session.get("http://h.test/token")
            moments.append(asyncio.get_running_loop().time())
        return True

    assert why(visit(with_login(slowly), Sessions(), Browser(shop, takes=0.0))) == "logged in"
    assert [round(moment, 1) for moment in moments] == [0.0, 0.1, 0.2]


def test_a_login_that_never_ends_is_ended() -> None:
    async def endless(session: LoginSession) -> bool:
        while True:
            await session.get("http://h.test/token")

    done = visit(with_login(endless), Sessions(), Browser(shop, takes=0.0))

    assert why(done).startswith("login failed: ValueError")


def test_a_page_of_accounts_with_passwords_is_not_read_without_a_login() -> None:
    fetcher = Browser(shop)

    done = visit(account_spider(), Sessions(), fetcher)

    assert (done.outcome, fetcher.asked) == (Bury(why=f"handler: no login for {POOL}"), [])


def test_a_login_that_is_blocked_is_tried_through_the_next_proxy() -> None:
    frontier, fetcher = Sessions(), Browser(answers(403, "Forbidden"))

    visit(with_login(), frontier, fetcher)
    visit(with_login(), frontier, fetcher)

    assert fetcher.ways == ["one:3128", "two:3128"]


def test_a_login_that_is_refused_rests_the_account_and_buries_no_page() -> None:
    def too_large(task: Task) -> Failure:
        return Failure(url=task.url, trouble=FailureKind.TOO_LARGE, why="body over 10 MiB")

    done = visit(with_login(), Sessions(stored(logged_in=False)), Browser(too_large))

    assert why(done) == "login failed: body over 10 MiB"
    assert done.member is MemberResult.BLOCKED


def test_a_form_is_not_sent_to_a_host_to_which_a_redirect_has_led() -> None:
    async def log_in(session: LoginSession) -> bool:
        page = await session.get("http://h.test/login")
        await session.post(page.url, form={"password": session.password})
        return True

    def elsewhere(task: Task) -> Answer:
        if task.url.startswith("http://h.test/"):
            return answers(302, location="http://evil.test/login")(task)
        return answers(200, "<form>")(task)

    fetcher = Browser(elsewhere)
    done = visit(with_login(log_in), Sessions(), fetcher)

    assert why(done).startswith("login failed: ValueError")
    assert [task.method for task in fetcher.asked] == ["GET", "GET"]

"""Visits with an account: who logs in, what is saved for the next holder, and which pages are never read."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tests.unit.worker.fake_ports import HTML, DiaryFrontier, SlowFetcher, tools
from trotline import LoginSession, Page, Spider
from trotline.errors import FrontierUnreachable
from trotline.model.account import Account, Session, StoredCookie
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.lease import Lease
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.proxy import Proxy, Way
from trotline.model.proxy_pool import MemberResult, account_id
from trotline.model.secret import Secret
from trotline.model.task import Task
from trotline.ports import send_deadline
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules import account_sessions
from trotline.testing.virtual_time import run_virtual
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.visit import Visitor

POOL = "@buyers"
ANNA = Account(pool=POOL, name="anna", user="anna@h.test", password=Secret("canary-of-anna"), proxies="residential")
LANE = f"h.test via {POOL}"
SEEN = (StoredCookie("http://h.test/login", "sid=1; Path=/", 1.0),)


class Sessions(DiaryFrontier):
    """Keeps the session of one account."""

    def __init__(self, state: bytes | None = b"", *, away: int = 0, lost_at_save: bool = False) -> None:
        super().__init__([])
        self.state = state
        self.away = away
        self.lost_at_save = lost_at_save
        self.saves = 0

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        assert worker == "w"
        return self.state

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        assert worker == "w"
        if self.away > 0:
            self.away -= 1
            raise FrontierUnreachable("locked")
        if self.lost_at_save:
            return False
        self.saves += 1
        self.state = state
        return True

    @property
    def session(self) -> Session:
        assert self.state is not None
        return account_sessions.decoded(self.state, ANNA.fingerprint)


class Ways:
    pools = ("", POOL)
    proxied = True

    def __init__(self, account: Account | None = ANNA, proxies: Sequence[str] = ("one", "two")) -> None:
        self._account = account
        self._proxies = proxies

    def way(self, lane: str, member: int) -> Way | None:
        raise AssertionError("an account has no way of its own")

    def account(self, lane: str, member: int) -> Account | None:
        return self._account

    def proxy_id(self, account: Account, moves: int, kept: int) -> int:
        if not self._proxies or account.proxies == "direct":
            return 0
        return kept or 1 + moves % len(self._proxies)

    def proxy_of(self, account: Account, moves: int, proxy: int = 0) -> Way | None:
        return Proxy(host=self._proxies[proxy - 1], port=3128)

    def size(self, lane: str) -> int:
        return 1


class Browser(SlowFetcher):
    """A fetcher that keeps the cookies of sessions."""

    def __init__(self, answer: Callable[[Task], Any] | None = None, takes: float = 0.1) -> None:
        super().__init__(takes, answer)
        self.ways: list[str] = []
        self.jars: dict[str, tuple[StoredCookie, ...]] = {}

    async def fetch(self, task: Task, way: object = None) -> Answer | Failure:
        self.ways.append(way.public if isinstance(way, Proxy) else "direct")
        if send_deadline.has_passed():
            return Failure(url=task.url, trouble=FailureKind.TIMEOUT, why=send_deadline.TOO_LATE)
        answer = await super().fetch(task, way)
        if isinstance(answer, Answer):
            came = [value for name, value in answer.headers if name == "set-cookie"]
            self.jars[task.session] += tuple(StoredCookie(task.url, header, 5.0) for header in came)
        return answer

    def restore_cookies(self, session: str, cookies: Sequence[StoredCookie]) -> None:
        self.jars[session] = tuple(cookies)

    def cookies(self, session: str) -> tuple[StoredCookie, ...]:
        return self.jars[session]


def account_spider(**settings: Any) -> Spider:
    spider = Spider("s", robots=False, hosts=["h.test"], pace="10/s", pool=POOL, **settings)

    @spider.page(key="name")
    def page(page: Page):  # type: ignore[no-untyped-def]
        yield {"name": page.css("h1::text").get(), "by": page.account}

    return spider


def with_login(login: Any = None, **settings: Any) -> Spider:
    spider = account_spider(**settings)

    async def log_in(session: LoginSession) -> bool:
        page = await session.post("http://h.test/login", form={"user": session.user, "password": session.password})
        return "Welcome" in page.text

    spider.login(POOL)(login or log_in)
    return spider


def shop(task: Task) -> Answer:
    """Answers logins with a cookie, and pages with their URL."""
    if task.url.endswith("/login"):
        assert task.method == "POST"
        right = b"password=canary-of-anna" in task.body
        headers = (*HTML, ("set-cookie", "sid=1; Path=/")) if right else HTML
        return Answer(url=task.url, status=200, headers=headers, body=b"Welcome" if right else b"Wrong password")
    return Answer(url=task.url, status=200, headers=HTML, body=f"<h1>{task.url}</h1>".encode())


def leased(url: str = "http://h.test/p", pool: str = POOL) -> Lease:
    task = Task(url=url, route="page", lane=f"h.test via {pool}", pool=pool, fingerprint=7, site="s")
    member = account_id(f"{POOL}/anna")
    return Lease(task=task, token=7, start_in=0.0, slack=0.25, leased_at=1000.0, asked_at=0.0, member=member)


def visit(
    spider: Spider, frontier: Sessions, fetcher: Browser, *, ways: Ways | None = None, lease: Lease | None = None
) -> FinishedVisit:
    visitor = Visitor(spider, tools(frontier, None, fetcher, ways=ways or Ways(), spider=spider), "w")
    return run_virtual(visitor.visit(lease or leased()))


def stored(**fields: Any) -> bytes:
    usual: dict[str, Any] = {"login": ANNA.fingerprint, "logged_in": True, "proved": True, "cookies": SEEN, "proxy": 1}
    return account_sessions.encoded(Session(**(usual | fields)))[0]


def why(done: FinishedVisit) -> str:
    assert isinstance(done.outcome, Snooze), done.outcome
    return done.outcome.why


def test_a_page_is_read_with_the_cookies_and_the_proxy_of_its_account() -> None:
    frontier, fetcher = Sessions(stored(moves=1, proxy=2)), Browser(shop)

    done = visit(with_login(), frontier, fetcher)

    assert isinstance(done.outcome, Done)
    assert [each.data for each in done.records] == [{"name": "http://h.test/p", "by": "anna"}]
    assert (fetcher.ways, [task.session for task in fetcher.asked]) == (["two:3128"], [f"{POOL}/anna"])
    assert fetcher.jars[f"{POOL}/anna"] == SEEN
    assert frontier.saves == 0, "nothing of the session has changed"


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

    frontier = Sessions(account_sessions.encoded(Session(login=wrong.fingerprint, blocks=1))[0])
    done = visit(with_login(), frontier, Browser(shop), ways=Ways(wrong))

    assert done.member is MemberResult.BLOCKED
    assert why(done) == "login rejected: rejected (last answer: 200 of POST /login)"


def test_a_login_handler_that_raises_rests_the_account_and_loses_no_page() -> None:
    def log_in(session: LoginSession) -> bool:
        raise KeyError("token")

    done = visit(with_login(log_in), Sessions(stored(logged_in=False, blocks=1)), Browser(shop))

    assert why(done).startswith("login failed: KeyError")
    assert done.member is MemberResult.BLOCKED


def test_a_login_without_an_answer_is_not_the_fault_of_the_account() -> None:
    def unreachable(task: Task) -> Failure:
        return Failure(url=task.url, trouble=FailureKind.CONNECT, why="connection refused")

    done = visit(with_login(), Sessions(), Browser(unreachable))

    assert done.member is MemberResult.UNCLEAR


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


def test_a_redirect_to_the_login_page_says_logged_out_by_itself() -> None:
    def moved(task: Task) -> Answer:
        return Answer(url=task.url, status=302, headers=(*HTML, ("location", "/account/login?next=/p")), body=b"")

    frontier = Sessions(stored())

    assert why(visit(with_login(), frontier, Browser(moved))) == "logged out: redirected to a login page"
    assert not frontier.session.logged_in


def test_a_login_after_which_no_page_can_be_read_rests_the_account() -> None:
    def never(task: Task) -> Answer:
        return Answer(url=task.url, status=401, headers=HTML, body=b"")

    done = visit(with_login(), Sessions(stored(proved=False, blocks=1, logged_in_at=950.0)), Browser(never))

    assert (why(done), done.member) == ("login does not last: status 401", MemberResult.BLOCKED)


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


def test_a_page_of_accounts_with_passwords_is_not_read_without_a_login() -> None:
    fetcher = Browser(shop)

    done = visit(account_spider(), Sessions(), fetcher)

    assert (done.outcome, fetcher.asked) == (Bury(why=f"handler: no login for {POOL}"), [])


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


def answers(status: int, body: str = "", **headers: str) -> Callable[[Task], Answer]:
    def answer(task: Task) -> Answer:
        return Answer(url=task.url, status=status, headers=(*HTML, *headers.items()), body=body.encode())

    return answer


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


def test_a_login_that_is_blocked_is_tried_through_the_next_proxy() -> None:
    frontier, fetcher = Sessions(), Browser(answers(403, "Forbidden"))

    visit(with_login(), frontier, fetcher)
    visit(with_login(), frontier, fetcher)

    assert fetcher.ways == ["one:3128", "two:3128"]


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


def test_a_session_that_the_site_has_ended_much_later_is_renewed() -> None:
    def never(task: Task) -> Answer:
        return Answer(url=task.url, status=401, headers=HTML, body=b"")

    done = visit(with_login(), Sessions(stored(proved=False, logged_in_at=100.0)), Browser(never))

    assert why(done) == "logged out: status 401"


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


def test_a_login_that_is_refused_rests_the_account_and_buries_no_page() -> None:
    def too_large(task: Task) -> Failure:
        return Failure(url=task.url, trouble=FailureKind.TOO_LARGE, why="body over 10 MiB")

    done = visit(with_login(), Sessions(stored(logged_in=False, blocks=1)), Browser(too_large))

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

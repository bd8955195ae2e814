"""What tests of visits with an account need: a frontier with one session, a fetcher with cookies, a spider."""

from collections.abc import Callable, Sequence
from typing import Any

from tests.unit.worker.fake_ports import HTML, DiaryFrontier, SlowFetcher, tools
from trotline import LoginSession, Page, Spider
from trotline.errors import FrontierUnreachable
from trotline.model.account import Account, Session, StoredCookie
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.lease import Lease
from trotline.model.outcome import Snooze
from trotline.model.proxy import Proxy, Way
from trotline.model.proxy_pool import account_id
from trotline.model.secret import Secret
from trotline.model.task import Task
from trotline.ports import send_deadline
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


def answers(status: int, body: str = "", **headers: str) -> Callable[[Task], Answer]:
    def answer(task: Task) -> Answer:
        return Answer(url=task.url, status=status, headers=(*HTML, *headers.items()), body=body.encode())

    return answer

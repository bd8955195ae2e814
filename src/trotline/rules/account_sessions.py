"""What a visit means for the session of its account."""

from collections import Counter
from math import isfinite

import msgspec

from trotline.model.account import LARGEST_SESSION, Session, StoredCookie
from trotline.model.proxy_pool import NO_PROXY, MemberResult, lane_of
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind

NOT_OF_THE_ACCOUNT = frozenset((Kind.THROTTLED, Kind.UNREACHABLE, Kind.BROKEN))
"""Answers to a login that say nothing about the account."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Session).decode
_LOGIN_PATHS = frozenset(
    (
        "login",
        "log-in",
        "log_in",
        "signin",
        "sign-in",
        "sign_in",
        "logon",
        "auth",
        "sso",
        "anmelden",
        "connexion",
    )
)


def decoded(state: bytes, login: str) -> Session:
    """The session as it was stored; a new one if there is none, or if it belongs to another login."""
    try:
        session = _decode(state) if state and len(state) <= LARGEST_SESSION else Session()
    except (msgspec.DecodeError, UnicodeDecodeError):
        session = Session()
    numbers = (session.logged_in_at, *(cookie.at for cookie in session.cookies))
    if not all(map(isfinite, numbers)) or min(session.moves, session.blocks) < 0:
        session = Session()
    return session if session.login == login else Session(login=login, moves=session.moves)


def encoded(session: Session) -> tuple[bytes, int]:
    """At most LARGEST_SESSION bytes, and how many cookies were dropped for that: the oldest of the host with the most
    bytes, as one host must not displace the cookies of another."""
    cookies = list(session.cookies)
    while True:
        state = _encode(msgspec.structs.replace(session, cookies=tuple(cookies)))
        if len(state) <= LARGEST_SESSION or not cookies:
            return state, len(session.cookies) - len(cookies)
        sizes: Counter[str] = Counter()
        for cookie in cookies:
            sizes[_host(cookie)] += len(cookie.header) + len(cookie.url)
        [(largest, _)] = sizes.most_common(1)
        cookies.remove(next(cookie for cookie in cookies if _host(cookie) == largest))


LASTS: Seconds = 60.0
"""A session that ends so soon, without a page, was no login. One that ends later was ended by the site."""


def logged_in(session: Session, cookies: tuple[StoredCookie, ...], now: Moment) -> Session:
    return msgspec.structs.replace(session, cookies=cookies, logged_in=True, proved=False, logged_in_at=now)


def did_not_last(session: Session, now: Moment) -> bool:
    return session.logged_in and not session.proved and now < session.logged_in_at + LASTS


def _host(cookie: StoredCookie) -> str:
    return cookie.url.partition("://")[2].partition("/")[0]


def logged_out(session: Session) -> Session:
    """Its cookies are worth nothing any more."""
    return msgspec.structs.replace(session, cookies=(), logged_in=False, proved=False)


def after_visit(session: Session, cookies: tuple[StoredCookie, ...], result: MemberResult) -> Session:
    """After a page that did not say "logged out"."""
    proved = session.proved or (session.logged_in and result is MemberResult.GOOD)
    return after_result(msgspec.structs.replace(session, cookies=cookies, proved=proved), result)


def after_result(session: Session, result: MemberResult) -> Session:
    """A proxy that fails, or whose address may be banned, is left."""
    if result is MemberResult.GOOD:
        return msgspec.structs.replace(session, blocks=0) if session.blocks else session
    if result is MemberResult.FAULT:
        return msgspec.structs.replace(session, moves=session.moves + 1, proxy=0)
    if result is MemberResult.BLOCKED:
        return msgspec.structs.replace(session, moves=session.moves + 1, proxy=0, blocks=session.blocks + 1)
    return session


def may_be_the_proxy(session: Session, result: MemberResult, proxies: str) -> bool:
    """Is it the first block of an account that goes out through proxies? Then its address may be banned: it is tried
    through the next one before the account rests."""
    return result is MemberResult.BLOCKED and proxies != NO_PROXY and session.blocks == 0


def with_first_url(moved: Task, task: Task) -> Task:
    """The redirected task, with the URL to go back to if the session has ended. A form cannot be sent again."""
    if task.method != "GET" or task.body:
        return moved
    return msgspec.structs.replace(moved, first_url=task.first_url or task.url)


def before_redirects(task: Task, lane: str) -> Task:
    """The task as it was; `lane`: of its first URL, without the pool."""
    return msgspec.structs.replace(
        task, url=task.first_url, lane=lane_of(lane, task.pool), hops=0, first_url="", method="GET", body=b""
    )


def leads_to_login(path: str) -> bool:
    """Is this the path of a login page? Sites redirect there when a session has ended."""
    parts = path.lower().strip("/").split("/")
    return any(part.partition(".")[0] in _LOGIN_PATHS for part in parts[-3:])

"""What a visit means for the session of its account."""

import msgspec

from trotline.model.account import LARGEST_SESSION, Session, StoredCookie
from trotline.model.proxy_pool import MemberResult

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
        session = _decode(state) if state else Session()
    except (msgspec.DecodeError, UnicodeDecodeError):
        session = Session()
    return session if session.login == login else Session(login=login, moves=session.moves)


def encoded(session: Session) -> tuple[bytes, int]:
    """At most LARGEST_SESSION bytes, and how many of the oldest cookies were dropped for that."""
    cookies = session.cookies
    while True:
        state = _encode(msgspec.structs.replace(session, cookies=cookies))
        if len(state) <= LARGEST_SESSION or not cookies:
            return state, len(session.cookies) - len(cookies)
        cookies = cookies[max(1, len(cookies) // 8) :]


def logged_in(session: Session, cookies: tuple[StoredCookie, ...]) -> Session:
    return msgspec.structs.replace(session, cookies=cookies, logged_in=True, proved=False)


def logged_out(session: Session) -> Session:
    """Its cookies are worth nothing any more."""
    return msgspec.structs.replace(session, cookies=(), logged_in=False, proved=False)


def after_visit(session: Session, cookies: tuple[StoredCookie, ...], result: MemberResult) -> Session:
    """After a page that did not say "logged out". A proxy that fails, or whose address is banned, is left."""
    moves = result in (MemberResult.FAULT, MemberResult.BLOCKED)
    return msgspec.structs.replace(
        session,
        cookies=cookies,
        proved=session.proved or (session.logged_in and result is MemberResult.GOOD),
        moves=session.moves + moves,
    )


def leads_to_login(path: str) -> bool:
    """Is this the path of a login page? Sites redirect there when a session has ended."""
    parts = path.lower().strip("/").split("/")
    return any(part.partition(".")[0] in _LOGIN_PATHS for part in parts[-3:])

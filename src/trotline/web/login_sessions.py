"""Who is asking: tokens, sessions and the limit of login attempts. Tokens and session ids are kept as hashes only."""

import secrets
import time
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple

import msgspec

from trotline.model.secret import Secret
from trotline.model.time import Seconds
from trotline.web.route_table import Role

LIFE: Seconds = 12 * 3600.0
"""Of a session."""
IDLE: Seconds = 3600.0
"""A session that is not used for so long ends."""
MOST_SESSIONS = 1000
"""The one that was not used for the longest time ends when another one begins."""
LOGINS_PER_ADDRESS = 5
"""Attempts a minute from one address."""
LOGINS_IN_ALL = 20
"""Attempts a minute from all addresses."""
_WINDOW: Seconds = 60.0
_MOST_ADDRESSES = 10_000

Clock = Callable[[], Seconds]


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """The one who asks."""

    role: Role = Role.ANYONE
    how: str = "nobody"
    """"session", "token", "local" (every user of this machine) or "nobody"."""
    address: str = ""
    session: str = ""
    """The hash of the session id; empty: none."""

    @property
    def name(self) -> str:
        """For the log: no secret."""
        return f"{self.role.name.lower()} by {self.how}" + (f" {self.session[:8]}" if self.session else "")


class Tokens:
    """The tokens of the roles. Without any, all who reach the server are operators."""

    def __init__(self, view: Secret | None = None, operate: Secret | None = None) -> None:
        given = ((Role.OPERATE, operate), (Role.VIEW, view))
        self._hashes = [(role, _hash(secret.reveal())) for role, secret in given if secret is not None]

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def role_of(self, token: str) -> Role | None:
        """All are compared, so that the time says nothing about which one was near."""
        asked = _hash(token)
        fits = [role for role, known in self._hashes if compare_digest(asked, known)]
        return fits[0] if fits else None


class _Session(msgspec.Struct):
    role: Role
    began: Seconds
    used: Seconds


class Sessions:
    """Kept in this process: they end with it."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[str, _Session] = {}
        """Hash of the id -> session; the one that was used last is the last."""

    def begin(self, role: Role) -> str:
        """The id for the cookie; only its hash stays here."""
        now = self._clock()
        self._end_old(now)
        name = secrets.token_urlsafe(32)
        self._sessions[_hash(name)] = _Session(role, now, now)
        return name

    def find(self, name: str) -> tuple[str, Role] | None:
        """Hash and role of a living session."""
        now, key = self._clock(), _hash(name)
        session = self._sessions.get(key)
        if session is None or not self._lives(session, now):
            self._sessions.pop(key, None)
            return None
        session.used = now
        self._sessions[key] = self._sessions.pop(key)
        return key, session.role

    def lives(self, key: str) -> bool:
        """Has it not ended since? For streams, which outlive the check at their start; looking is not using it."""
        session = self._sessions.get(key)
        return session is not None and self._lives(session, self._clock())

    def end(self, key: str) -> None:
        self._sessions.pop(key, None)

    def _lives(self, session: _Session, now: Seconds) -> bool:
        return now - session.began < LIFE and now - session.used < IDLE

    def _end_old(self, now: Seconds) -> None:
        for key in [key for key, session in self._sessions.items() if not self._lives(session, now)]:
            del self._sessions[key]
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]


class Allowance(NamedTuple):
    allowed: bool
    again_in: Seconds = 0.0


class LoginLimit:
    """Attempts to log in with a wrong token: LOGINS_PER_ADDRESS and LOGINS_IN_ALL a minute."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._all: deque[Seconds] = deque(maxlen=LOGINS_IN_ALL)
        self._by_address: dict[str, deque[Seconds]] = {}

    def attempt(self, address: str) -> Allowance:
        """Counts it if it is allowed."""
        now = self._clock()
        own = self._by_address.setdefault(address, deque(maxlen=LOGINS_PER_ADDRESS))
        for attempts in (own, self._all):
            if len(attempts) == attempts.maxlen and now - attempts[0] < _WINDOW:
                return Allowance(False, _WINDOW - (now - attempts[0]))
        own.append(now)
        self._all.append(now)
        self._forget(now)
        return Allowance(True)

    def _forget(self, now: Seconds) -> None:
        if len(self._by_address) > _MOST_ADDRESSES:
            self._by_address = {name: past for name, past in self._by_address.items() if now - past[-1] < _WINDOW}


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

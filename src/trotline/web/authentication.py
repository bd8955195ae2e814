"""From a request to the one who asks: a token, a session's cookie, or (on loopback without tokens) anybody."""

from aiohttp import web

from trotline.web.errors import Refused
from trotline.web.forwarded_for import HEADER, Trusted
from trotline.web.login_sessions import LoginLimit, Sessions, Tokens, Who
from trotline.web.route_table import Role, Route

COOKIE = "trotline_session"
_BEARER = "bearer "
_LONGEST_TOKEN = 1000


class Access:
    def __init__(self, tokens: Tokens, trusted: Trusted | None = None) -> None:
        """`trusted`: reverse proxies, which say for whom they ask."""
        self.tokens = tokens
        self.trusted = trusted or Trusted()
        self.sessions = Sessions()
        self.limit = LoginLimit()

    def address(self, request: web.Request) -> str:
        """Of the one who asks, behind proxies that we trust."""
        return self.trusted.client(request.remote or "", request.headers.getall(HEADER, []))

    def who(self, request: web.Request) -> Who:
        address = self.address(request)
        if not self.tokens:
            return Who(role=Role.OPERATE, how="local", address=address)
        if header := request.headers.get("Authorization", ""):
            return self._by_token(header, address)
        if found := self.sessions.find(request.cookies.get(COOKIE, "")):
            return Who(role=found[1], how="session", address=address, session=found[0])
        return Who(address=address)

    def login(self, token: str, address: str) -> str:
        """The session's id for the cookie."""
        role = self.tokens.role_of(token) if len(token) <= _LONGEST_TOKEN else None
        if role is None:
            # Only wrong ones are counted: a token is too long to be guessed, and those who have it are not kept out by
            # the attempts of others from the same address, such as that of a proxy.
            self._count(address)
            raise Refused(401, "this is not a token of this server")
        return self.sessions.begin(role)

    def _by_token(self, header: str, address: str) -> Who:
        token = header[len(_BEARER) :].strip() if header[: len(_BEARER)].lower() == _BEARER else ""
        role = self.tokens.role_of(token) if 0 < len(token) <= _LONGEST_TOKEN else None
        if role is None:
            # Right ones are not counted: a program may ask often.
            self._count(address)
            raise Refused(401, "this is not a token of this server", headers={"WWW-Authenticate": "Bearer"})
        return Who(role=role, how="token", address=address)

    def _count(self, address: str) -> None:
        allowed = self.limit.attempt(address)
        if not allowed.allowed:
            again = str(int(allowed.again_in) + 1)
            raise Refused(
                429, "too many attempts to log in", hint=f"Try again in {again} s.", headers={"Retry-After": again}
            )


def refuse_role(route: Route, who: Who) -> None:
    if who.role >= route.role:
        return
    if who.role is Role.ANYONE:
        raise Refused(
            401,
            "a token is needed",
            hint="Log in at /login, or send it: Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": "Bearer"},
        )
    raise Refused(403, "this needs the role operate", hint="Your token is for viewing: use the operator's token.")

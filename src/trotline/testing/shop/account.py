"""Login with a form token and a session cookie, and the one page that needs it."""

import secrets
from collections.abc import Iterable

from aiohttp import web

from trotline.testing.shop.answers import page
from trotline.testing.shop.looks import escape, link, list_of
from trotline.testing.shop.stock import Stock

USER = "demo"
PASSWORD = "let-me-in"  # noqa: S105  It protects nothing and is printed on the login page.
_VISITOR, _SESSION = "visitor", "session"


class Account:
    """Tokens and sessions live in memory; `forget` logs all users out."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self.forget()

    def forget(self) -> None:
        self._tokens: dict[str, str] = {}
        self._sessions: set[str] = set()

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get("/login", self.form),
            web.post("/login", self.login),
            web.get("/account", self.account),
            web.get("/logout", self.logout),
        )

    async def form(self, request: web.Request) -> web.Response:
        return self._form(request, 200, "")

    async def login(self, request: web.Request) -> web.Response:
        """403 without the token that this visitor's form carried, 401 for a wrong password, else on to the account."""
        fields = await request.post()
        token = self._tokens.get(request.cookies.get(_VISITOR, ""))
        if token is None or fields.get("token") != token:
            return self._form(request, 403, "The form has expired. Please try again.")
        if (fields.get("user"), fields.get("password")) != (USER, PASSWORD):
            return self._form(request, 401, "Wrong name or password.")
        session = secrets.token_hex(16)
        self._sessions.add(session)
        answer = web.Response(status=303, headers={"Location": "/account"})
        answer.set_cookie(_SESSION, session, httponly=True, samesite="Lax")
        return answer

    async def account(self, request: web.Request) -> web.Response:
        if request.cookies.get(_SESSION) not in self._sessions:
            return web.Response(status=303, headers={"Location": "/login"})
        orders = [
            f'<span class="number">{order.number}</span> {link(f"/p/{order.sku}", order.sku)}'
            f'<span class="total">{order.total}</span>'
            for order in self._stock.orders
        ]
        main = f'<h1>Hello, <span class="user">{USER}</span></h1>{list_of(orders, css="orders")}'
        return page("Your account", f"{main}<p>{link('/logout', 'Log out')}</p>")

    async def logout(self, request: web.Request) -> web.Response:
        self._sessions.discard(request.cookies.get(_SESSION, ""))
        answer = web.Response(status=303, headers={"Location": "/login"})
        answer.del_cookie(_SESSION)
        return answer

    def _form(self, request: web.Request, status: int, error: str) -> web.Response:
        visitor = request.cookies.get(_VISITOR)
        if visitor is None or visitor not in self._tokens:
            visitor = secrets.token_hex(8)
            self._tokens[visitor] = secrets.token_hex(16)
        answer = page("Log in", _login_form(self._tokens[visitor], error), status=status)
        answer.set_cookie(_VISITOR, visitor, httponly=True, samesite="Lax")
        return answer


def _login_form(token: str, error: str) -> str:
    message = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    return (
        f'<h1>Log in</h1>{message}<form class="box" method="post" action="/login">'
        f'<input type="hidden" name="token" value="{token}">'
        '<label>Name <input name="user" autocomplete="username" required></label>'
        '<label>Password <input name="password" type="password" autocomplete="current-password" required></label>'
        f"<button>Log in</button><p>The name is <kbd>{USER}</kbd>, the password <kbd>{PASSWORD}</kbd>.</p></form>"
    )

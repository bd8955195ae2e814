"""Headers and cookies of a spider or a route, checked and sorted by who may get them."""

from collections.abc import Mapping
from typing import Any

from trotline.model.proxy_pool import is_account_pool
from trotline.model.route_request import NO_COOKIES, RouteRequest, own_jar
from trotline.model.secret import Secret
from trotline.rules import redaction
from trotline.rules.task_checks import shown
from trotline.spider.spider_checks import Checks


def by_secrecy(given: Mapping[str, str | Secret]) -> tuple[dict[str, str], dict[str, Secret]]:
    """Headers for every host, and those for the spider's own hosts only."""
    open_ = {n: v for n, v in given.items() if isinstance(v, str) and not redaction.is_secret_header(n)}
    return open_, {name: secret(value) for name, value in given.items() if name not in open_}


def secret(value: str | Secret) -> Secret:
    return value if isinstance(value, Secret) else Secret(value)


def route_request(check: Checks, route: str, headers: Any, user_agent: Any, cookies: Any) -> RouteRequest | None:
    """What requests of a route have of their own; None: nothing."""
    given = check.headers("headers", headers or {})
    if user_agent is not None:
        if any(name.lower() == "user-agent" for name in given):
            raise check.refuse("user_agent, and a User-Agent in headers", "Give one of them.")
        given["User-Agent"] = check.text("user_agent", user_agent)
    if cookies is not None and cookies is not False and cookies != "route":
        raise check.refuse(f"cookies is {shown(cookies)}", 'Give False for none, or "route" for a jar of its own.')
    jar = "" if cookies is None else own_jar(route) if cookies == "route" else NO_COOKIES
    plain, secrets = by_secrecy(given)
    return RouteRequest(headers=plain, secret_headers=secrets, jar=jar) if given or jar else None


def accounts_have_cookies(check: Checks, pool: Any, *, keeps: bool) -> None:
    if not keeps and isinstance(pool, str) and is_account_pool(pool):
        hint = "Accounts are logged in by cookies: leave out cookies=False, or give this route another pool."
        raise check.refuse(f"cookies=False with the accounts {pool}", hint)

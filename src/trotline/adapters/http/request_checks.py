"""Checks before a request: headers, allowed hosts, origin."""

import re
from collections.abc import Collection, Iterable, Mapping

from yarl import URL

from trotline.adapters.http.guard import Forbidden, Guard
from trotline.errors import SettingsError
from trotline.rules.client_headers import client_header
from trotline.rules.private_addresses import Allowed, allowed

_BREAKS_A_HEADER = re.compile(r"[\r\n\0\ud800-\udfff]")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def places(allow: Collection[str]) -> Allowed:
    """Hosts and networks of the settings; SettingsError names an invalid one."""
    try:
        return allowed(allow)
    except ValueError as error:
        raise SettingsError(f"allow: {error}") from error


def checked(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers; raises Forbidden for one that could inject another."""
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or _BREAKS_A_HEADER.search(value):
            raise Forbidden(f"header {name!r} has a line break or a lone surrogate, or is not a valid header name")
    return headers


def checked_of_task(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """As `checked`, for a task of the frontier. Other programs may write there, and hide a request in a body."""
    headers = dict(pairs)
    if name := client_header(headers):
        raise Forbidden(f"header {name!r} belongs to the HTTP client, and no task may set it")
    return checked(headers)


def why_not_origin(url: URL, guard: Guard) -> str:
    """Why the origin is refused; empty if it is allowed."""
    if url.scheme not in ("http", "https"):
        return f"scheme {url.scheme or 'nothing'!r} is not http or https"
    if url.raw_user is not None or url.raw_password is not None:
        return "the URL carries a user name or password; send credentials in a header"
    if not url.raw_host or url.port is None:
        return "the URL names no host"
    try:
        guard.admit(url.raw_host, url.port)
    except Forbidden as error:
        return error.why
    return ""

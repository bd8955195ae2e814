"""What stands before every handler: the Host header, the headers of all answers, and requests forged by other sites."""

from collections.abc import Collection, MutableMapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from trotline.web.errors import Refused
from trotline.web.login_sessions import Who
from trotline.web.route_table import JSON, NDJSON

CONTENT_SECURITY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer. Static files have a Cache-Control of their own."""
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not bound
_NOT_BY_FORM: Final = frozenset({JSON, NDJSON})
"""Media types that a page of another site cannot send without a preflight, which is never granted."""


def host_of(header: str) -> str:
    """The name in a Host header or in an Origin's authority, without the port and in lower case; "": it is odd."""
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return ""
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return ""
    return (parts.hostname or "").rstrip(".")


class Hosts:
    """The names under which the server may be asked. A page of another site that made its own name point to our address
    (DNS rebinding) still sends its own name."""

    def __init__(self, bound: str, names: Collection[str] = ()) -> None:
        self._names = LOOPBACK | {name.lower().rstrip(".") for name in names} | ({bound.lower()} - _ANY)
        self._any = bound in _ANY

    def allows(self, header: str, local_address: str) -> bool:
        """`local_address`: where the connection arrived. A name in digits cannot be rebound."""
        host = host_of(header)
        if host in self._names:
            return bool(host)
        return self._any and bool(host) and _same_address(host, local_address)


def _same_address(host: str, local: str) -> bool:
    try:
        one, other = ip_address(host), ip_address(local.partition("%")[0])
    except ValueError:
        return False
    return one == other or getattr(other, "ipv4_mapped", None) == one


def refuse_host(request: web.Request, hosts: Hosts) -> None:
    given = request.headers.getall("Host", [])
    local = request.transport.get_extra_info("sockname") if request.transport is not None else None
    if len(given) != 1 or not hosts.allows(given[0], str(local[0]) if local else ""):
        raise Refused(
            421,
            "this server is not asked under this name",
            hint="If it is right: trotline web --host-name NAME",
            headers={"Connection": "close"},
        )


def refuse_forged(request: web.Request, who: Who) -> None:
    """403 unless a request that changes something was made by our own pages, or by a program.

    Browsers say where a request comes from: Sec-Fetch-Site, or at least Origin. A program that sends neither cannot be
    a page of another site if it has a token of its own, or sends what a page cannot send without being asked first.
    """
    if request.method in ("GET", "HEAD"):
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        ours = site == "same-origin"
    elif origin is not None:
        ours = _authority(origin) == request.headers.get("Host", "").lower()
    else:
        ours = who.how == "token" or (not who.session and _not_by_form(request))
    if not ours:
        raise Refused(
            403,
            "this request was made by a page of another site",
            hint="Programs send a token (Authorization: Bearer ...), or a body of application/json and no Origin.",
        )


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _not_by_form(request: web.Request) -> bool:
    return request.method == "DELETE" or request.content_type in _NOT_BY_FORM


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """For `Application.on_response_prepare`: pages, data, streams and errors alike."""
    harden(response.headers)


def harden(headers: MutableMapping[str, str]) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    # Versions are for those who look for old ones.
    headers["Server"] = "trotline"

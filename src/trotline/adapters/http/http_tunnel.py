"""Tunnels by the HTTP method CONNECT."""

import re
from collections.abc import Mapping

from trotline.adapters.http.proxy_stream import ProxyStream, Refused
from trotline.model.answer import FailureKind
from trotline.rules.provider_errors import provider_error

_LONGEST_REPLY = 16 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: [^\r\n]*)?\r\n")
_CARRIES_A_PAGE = re.compile(rb"\r\n(?:content-length: *0*[1-9]|transfer-encoding:)", re.IGNORECASE)
_OF_THE_PROXY = {
    401: "authentication failed",
    402: "payment required",
    407: "authentication failed",
    429: "rate limit reached",
}
"""Statuses of the proxy itself, not of the target."""


async def open_tunnel(stream: ProxyStream, target: str, login: Mapping[str, str]) -> None:
    """Send CONNECT and check the reply; raises `Refused`."""
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    lines += [f"{name}: {value}" for name, value in login.items()]
    await stream.send("\r\n".join([*lines, "", ""]).encode("latin-1"))
    reply = b""
    while b"\r\n\r\n" not in reply:
        more = await stream.receive(4096)
        if not more or len(reply) > _LONGEST_REPLY:
            raise Refused(FailureKind.PROXY, "closed the connection" if not more else "reply head too long")
        reply += more
    _judge(reply)


def _judge(reply: bytes) -> None:
    match = _STATUS.match(reply)
    if match is None:
        raise Refused(FailureKind.PROXY, "reply is not HTTP")
    status = int(match[1])
    head, _, beyond = reply.partition(b"\r\n\r\n")
    if 200 <= status < 300:
        if beyond or _CARRIES_A_PAGE.search(head):
            # A captive portal, for example: its page would be taken for the site's.
            raise Refused(FailureKind.PROXY, "sent a page of its own instead of opening a tunnel")
        return
    if status in _OF_THE_PROXY:
        raise Refused(FailureKind.PROXY, f"{_OF_THE_PROXY[status]} ({status})")
    said = provider_error(_headers(head))
    if said is not None:
        raise Refused(said[0], f"{said[1]} ({status})")
    raise Refused(FailureKind.CONNECT if status >= 500 else FailureKind.PROXY_REFUSED, str(status))


def _headers(head: bytes) -> list[tuple[str, str]]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]

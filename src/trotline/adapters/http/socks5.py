"""Tunnels by SOCKS5 (RFC 1928), with user and password (RFC 1929) or without."""

import struct
from ipaddress import ip_address

from trotline.adapters.http.proxy_stream import ProxyStream, Refused
from trotline.model.answer import FailureKind

_VERSION, _CONNECT = 5, 1
_NO_LOGIN, _LOGIN, _NO_METHOD = 0, 2, 0xFF
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REPLIES = {
    1: (FailureKind.CONNECT, "general failure"),
    2: (FailureKind.PROXY_REFUSED, "not allowed by its rules"),
    3: (FailureKind.CONNECT, "network unreachable"),
    4: (FailureKind.CONNECT, "host unreachable"),
    5: (FailureKind.CONNECT, "connection refused"),
    6: (FailureKind.CONNECT, "TTL expired"),
    7: (FailureKind.PROXY, "does not support CONNECT"),
    8: (FailureKind.PROXY_REFUSED, "address type not supported"),
}
"""1 is ambiguous, like 500 of an HTTP proxy: a failure of the target, so that no page is retried without end."""


async def open_tunnel(stream: ProxyStream, host: str, port: int) -> None:
    """A tunnel to an address or a name, after `log_in`; raises `Refused`."""
    await stream.send(bytes([_VERSION, _CONNECT, 0]) + _address(host) + struct.pack("!H", port))
    version, code, _, kind = await _receive(stream, 4)
    if version != _VERSION:
        raise Refused(FailureKind.PROXY, "reply is not SOCKS5")
    if code:
        what, why = _REPLIES.get(code, (FailureKind.PROXY, "unknown error"))
        raise Refused(what, f"{why} (SOCKS5 reply {code})")
    # The proxy's own address: not used, but it stands before the first byte of the target.
    lengths = {_IPV4: 4, _IPV6: 16}
    if kind not in lengths and kind != _NAME:
        raise Refused(FailureKind.PROXY, "reply is not SOCKS5")
    await _receive(stream, (lengths[kind] if kind in lengths else (await _receive(stream, 1))[0]) + 2)


async def log_in(stream: ProxyStream, user: str, password: str) -> None:
    """The proxy's own part of the negotiation, before it knows a target; raises `Refused`."""
    methods = [_NO_LOGIN, _LOGIN] if user or password else [_NO_LOGIN]
    await stream.send(bytes([_VERSION, len(methods), *methods]))
    version, method = await _receive(stream, 2)
    if version != _VERSION:
        raise Refused(FailureKind.PROXY, "reply is not SOCKS5")
    if method == _NO_LOGIN:
        return
    if method != _LOGIN or _LOGIN not in methods:
        needs = (
            "authentication failed: it accepts no login of ours" if user else "authentication failed: it needs a login"
        )
        raise Refused(FailureKind.PROXY, needs if method == _NO_METHOD else f"unknown login method {method}")
    name, secret = user.encode(), password.encode()
    await stream.send(bytes([1, len(name)]) + name + bytes([len(secret)]) + secret)
    _, status = await _receive(stream, 2)
    if status:
        raise Refused(FailureKind.PROXY, "authentication failed (SOCKS5 login)")


def _address(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        name = host.encode("ascii")
        if len(name) > 255:
            raise Refused(FailureKind.PROXY_REFUSED, "the host name is longer than 255 bytes") from None
        return bytes([_NAME, len(name)]) + name
    return bytes([_IPV4]) + address.packed if address.version == 4 else bytes([_IPV6]) + address.packed


async def _receive(stream: ProxyStream, count: int) -> bytes:
    """Exactly so many bytes: what follows belongs to the tunnel."""
    received = b""
    while len(received) < count:
        more = await stream.receive(count - len(received))
        if not more:
            raise Refused(FailureKind.PROXY, "closed the connection")
        received += more
    return received

"""Turns errors of the server into FrontierErrors with a hint."""

import re

from redis import exceptions
from redis.asyncio.sentinel import MasterNotFoundError

from trotline.errors import FrontierError, FrontierGone, FrontierUnreachable

LOST = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)
"""No reply: it is unknown whether the command took effect."""
UNREACHABLE = (*LOST, exceptions.ClusterError, exceptions.RedisClusterException)

_NO_TLS = ("Timeout connecting", "[SSL", "SSL handshake")
"""A server without TLS waits for more data, or sends an invalid answer."""
_HUNG_UP = ("Connection closed by server", "Connection reset by peer", "Protocol Error")
"""A server that shuts down does this, and one that requires TLS."""
_LUA = re.compile(r"^(?:ERR )?(?:@?user_script:\d+: )?|(?:,? ?script: [0-9a-f]{40}.*)")
_SCHEMES = {
    True: "Does the port use TLS? If not, use redis:// instead of rediss://.",
    False: "Does the port use TLS? If so, use rediss:// instead of redis://.",
}


_CHANGED = "Another program changed Trotline's data."
_SEE = f"{_CHANGED} Find the job: trotline jobs; delete it: trotline jobs --forget ID"
_SHARED = "If all jobs are affected, it is the shared key trotline:{0}:lanes: restore it from a backup."


class WrongKind(FrontierError):
    """A key of ours has a value of another type."""


def explained(error: Exception, place: str, *, tls: bool = False) -> FrontierError:
    """`place`: the server, without a password; `tls`: the connection uses TLS."""
    text = str(error)
    word = text.partition(" ")[0]
    if "NOJOB" in text:
        return FrontierGone(f"{place} has no such job", hint="See which there are: trotline jobs")
    if isinstance(error, exceptions.OutOfMemoryError) or word == "OOM":
        return FrontierUnreachable(
            f"{place} is out of memory",
            hint="Raise maxmemory, or wait until workers have freed some. Admitted tasks are safe.",
        )
    if isinstance(error, exceptions.AuthenticationError) or word in ("NOAUTH", "WRONGPASS"):
        return FrontierUnreachable(
            f"{place}: authentication failed", hint="Check the user and the password in its URL."
        )
    if isinstance(error, exceptions.NoPermissionError) or word == "NOPERM":
        return FrontierUnreachable(
            f"{place}: permission denied",
            hint="It needs the keys trotline:*, the channels trotline:* and the scripting commands.",
        )
    if isinstance(error, exceptions.ReadOnlyError) or word == "READONLY":
        return FrontierUnreachable(f"{place} is a replica", hint="Name the primary, or use redis+sentinel://.")
    if isinstance(error, exceptions.BusyLoadingError) or word == "LOADING":
        return FrontierUnreachable(f"{place} is still loading its data", hint="Try again in a moment: nothing is lost.")
    if isinstance(error, exceptions.AskError):  # MovedError is one
        # Retrying does not help.
        return FrontierError(
            f"{place} is a node of a Cluster, and the key is on another node",
            hint="Use redis+cluster://HOST:PORT: the other nodes are discovered.",
        )
    if isinstance(error, MasterNotFoundError):
        return FrontierUnreachable(
            f"no sentinel is reachable for {place}, or none knows it",
            hint=f"Check the sentinels' addresses and the name. {_SCHEMES[tls]}",
        )
    if isinstance(error, exceptions.ClusterError) or word in (
        "MISCONF",
        "NOREPLICAS",
        "MASTERDOWN",
        "CLUSTERDOWN",
        "BUSY",
    ):
        return FrontierUnreachable(f"{place} accepts no writes now: {text[:200]}", hint="See the server's log.")
    if isinstance(error, UNREACHABLE):
        return _unreached(text, place, tls)
    if word == "WRONGTYPE":
        return WrongKind(f"a key of this job at {place} has a value of another type", hint=f"{_SEE}. {_SHARED}")
    if "script:" in text:
        return FrontierError(f"the data of this job at {place} cannot be read: {_short(_lua_message(text))}", hint=_SEE)
    return FrontierError(f"{place} answered: {text[:300]}")


def _lua_message(text: str) -> str:
    """Without the script's name and line."""
    return _LUA.sub("", text)


def _unreached(text: str, place: str, tls: bool) -> FrontierUnreachable:
    if "CERTIFICATE_VERIFY_FAILED" in text:
        why = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "unknown reason"
        return FrontierUnreachable(
            f"the certificate of {place} is not trusted: {_short(why)}",
            hint="Give a file with trusted certificates: rediss://...?ca=FILE",
        )
    if tls and any(word in text for word in _NO_TLS):
        return FrontierUnreachable(f"{place}: TLS handshake failed: {_short(text)}", hint=_SCHEMES[tls])
    hint = "Is the server running, and is the URL right?"
    if not tls and any(word in text for word in _HUNG_UP):
        hint = f"{hint} {_SCHEMES[tls]}"
    return FrontierUnreachable(f"cannot reach {place}: {_short(text)}", hint=hint)


def _short(text: str) -> str:
    return (text.splitlines() or ["no answer"])[0][:200]

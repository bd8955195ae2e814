"""What a server's error means, in plain words, and what to do about it."""

import re

from redis import exceptions
from redis.asyncio.sentinel import MasterNotFoundError

from trotline.errors import FrontierError, FrontierGone, FrontierUnreachable

LOST = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)
"""No reply: it is unknown whether the command took effect."""
AWAY = (*LOST, exceptions.ClusterError, exceptions.RedisClusterException)

_NO_TLS = ("Timeout connecting", "[SSL", "SSL handshake")
"""A server that knows nothing of TLS waits for the rest of what it takes for a command, or answers something else."""
_HUNG_UP = ("Connection closed by server", "Connection reset by peer", "Protocol Error")
"""What a server that dies does, and one that wants TLS."""
_LUA = re.compile(r"^(?:ERR )?(?:@?user_script:\d+: )?|(?:,? ?script: [0-9a-f]{40}.*)")
_SCHEMES = {
    True: "Is it a port for TLS? One without is named by redis:// instead of rediss://.",
    False: "Is it a port for TLS? Such a one is named by rediss:// instead of redis://.",
}


_CHANGED = "Another program changed what Trotline keeps there."
_SEE = f"{_CHANGED} See whose it is: trotline jobs; forget that job: trotline jobs --forget ID"
_SHARED = "If every job says so, it is trotline:{0}:lanes, which they share: restore it from a backup."


class WrongKind(FrontierError):
    """A key of ours holds another kind of value."""


def explained(error: Exception, place: str, *, tls: bool = False) -> FrontierError:
    """What is wrong and what to do, in the words of this project. `place` is shown, and has no password in it; `tls`:
    that is how we talk to it."""
    text = str(error)
    word = text.partition(" ")[0]
    if "NOJOB" in text:
        return FrontierGone(f"{place} has no such job", hint="See which there are: trotline jobs")
    if isinstance(error, exceptions.OutOfMemoryError) or word == "OOM":
        return FrontierUnreachable(
            f"{place} has used up its memory and takes no more tasks",
            hint="Raise maxmemory, or wait until workers have made room. What it took is safe.",
        )
    if isinstance(error, exceptions.AuthenticationError) or word in ("NOAUTH", "WRONGPASS"):
        return FrontierUnreachable(
            f"{place}: authentication failed", hint="Check the user and the password in the frontier's URL."
        )
    if isinstance(error, exceptions.NoPermissionError) or word == "NOPERM":
        return FrontierUnreachable(
            f"{place} does not give this user the permission",
            hint="It needs the keys trotline:*, the channels trotline:* and the scripting commands.",
        )
    if isinstance(error, exceptions.ReadOnlyError) or word == "READONLY":
        return FrontierUnreachable(f"{place} is a replica", hint="Name the primary, or use redis+sentinel://.")
    if isinstance(error, exceptions.BusyLoadingError) or word == "LOADING":
        return FrontierUnreachable(f"{place} is still loading its data", hint="It is tried again.")
    if isinstance(error, exceptions.AskError):  # MovedError is one
        # No use in trying again.
        return FrontierError(
            f"{place} is a node of a Cluster, and what is asked for is on another",
            hint="Name it as redis+cluster://HOST:PORT: the other nodes are found by themselves.",
        )
    if isinstance(error, MasterNotFoundError):
        return FrontierUnreachable(
            f"no sentinel answers for {place}, or none knows it",
            hint=f"Check the sentinels' addresses and the name. {_SCHEMES[tls]}",
        )
    if isinstance(error, exceptions.ClusterError) or word in (
        "MISCONF",
        "NOREPLICAS",
        "MASTERDOWN",
        "CLUSTERDOWN",
        "BUSY",
    ):
        return FrontierUnreachable(f"{place} takes no writes now: {text[:200]}", hint="See the server's log.")
    if isinstance(error, AWAY):
        return _unreached(text, place, tls)
    if word == "WRONGTYPE":
        return WrongKind(f"a key of this job at {place} holds another kind of value", hint=f"{_SEE}. {_SHARED}")
    if "script:" in text:
        return FrontierError(f"what {place} keeps of this job cannot be read: {_short(_said_in_lua(text))}", hint=_SEE)
    return FrontierError(f"{place} answered: {text[:300]}")


def _said_in_lua(text: str) -> str:
    """Without the script's name and line."""
    return _LUA.sub("", text)


def _unreached(text: str, place: str, tls: bool) -> FrontierUnreachable:
    if "CERTIFICATE_VERIFY_FAILED" in text:
        why = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "it is not vouched for"
        return FrontierUnreachable(
            f"the certificate of {place} is not trusted: {_short(why)}",
            hint="Name the file of the certificates to trust: rediss://...?ca=FILE",
        )
    if tls and any(word in text for word in _NO_TLS):
        return FrontierUnreachable(f"{place} does not answer TLS: {_short(text)}", hint=_SCHEMES[tls])
    hint = "Is the server running, and is the URL right?"
    if not tls and any(word in text for word in _HUNG_UP):
        hint = f"{hint} {_SCHEMES[tls]}"
    return FrontierUnreachable(f"cannot reach the frontier at {place}: {_short(text)}", hint=hint)


def _short(text: str) -> str:
    return (text.splitlines() or ["no answer"])[0][:200]

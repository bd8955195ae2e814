"""Redirects: the task for the new URL."""

import msgspec
from can_ada import parse

from trotline.model.proxy_pool import lane_of
from trotline.model.task import Task
from trotline.rules.redaction import is_secret_header

_OF_THE_BODY = frozenset({"content-type", "content-length", "content-encoding", "content-language"})


def moved(task: Task, status: int, url: str, lane: str) -> Task:
    """The task for the new URL: method as in the Fetch standard, credentials only within one origin, through the same
    proxy pool. `lane`: of the new URL, without the pool."""
    method, body, headers = task.method, task.body, task.headers
    elsewhere = _origin(task.url) != _origin(url)
    # 301 to 303 drop the body at another origin; only 307 and 308 resend it (`may_carry_body`).
    if _becomes_get(status, method) or (elsewhere and body and status in (301, 302, 303)):
        method, body = "GET", b""
        headers = tuple(pair for pair in headers if pair[0].lower() not in _OF_THE_BODY)
    if elsewhere:
        headers = tuple(pair for pair in headers if not is_secret_header(pair[0]))
    return msgspec.structs.replace(
        task, url=url, lane=lane_of(lane, task.pool), method=method, body=body, headers=headers, hops=task.hops + 1
    )


def may_carry_body(url: str, target: str) -> bool:
    """May the body of a request for `url` be resent to `target`? Within its origin, or from http to https."""
    if _origin(url) == _origin(target):
        return True
    old, new = parse(url), parse(target)
    # The usual upgrade from http to https; with a port it may be another server.
    upgraded = old.protocol == "http:" and new.protocol == "https:"
    return bool(upgraded and old.hostname == new.hostname and not old.port and not new.port)


def _becomes_get(status: int, method: str) -> bool:
    return (status in (301, 302) and method == "POST") or (status == 303 and method not in ("GET", "HEAD"))


def _origin(url: str) -> str:
    return str(parse(url).origin)

"""Turns a task into an answer or a failure: one hop."""

from collections.abc import Sequence
from typing import Protocol

from trotline.model.account import StoredCookie
from trotline.model.answer import Answer, Failure
from trotline.model.proxy import Way
from trotline.model.task import Task


class Fetcher(Protocol):
    """P1 never raises for what a site does: it answers a Failure
    P2 every limit is finite; the one that struck is named in the Failure
    P3 redirects are answers: the caller decides whether to follow
    P4 a private address is never dialled unless it was allowed, nor passed to a proxy
    P5 with a way, the request goes out through it or not at all
    """

    async def fetch(self, task: Task, way: Way | None = None) -> Answer | Failure:
        """One hop, through `way`; None: directly, or through the one proxy of the fetcher."""
        ...

    async def fetch_start(self, task: Task, most: int, way: Way | None = None) -> Answer | Failure:
        """One hop, of any content type; a body of more than `most` bytes is cut there, with a note (`CUT_SHORT`)."""
        ...

    def restore_cookies(self, session: str, cookies: Sequence[StoredCookie]) -> None:
        """The session (`task.session`) gets these cookies instead of its own, whatever the way."""
        ...

    def cookies(self, session: str) -> tuple[StoredCookie, ...]:
        """The cookies of a session that was restored, for the next holder of its account."""
        ...

    async def close(self) -> None: ...

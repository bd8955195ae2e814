"""Turns a task into an answer or a failure: one hop."""

from typing import Protocol

from trotline.model.answer import Answer, Failure
from trotline.model.task import Task


class Fetcher(Protocol):
    """P1 never raises for what a site does: it answers a Failure
    P2 every limit is finite; the one that struck is named in the Failure
    P3 redirects are answers: the caller decides whether to follow
    P4 a private address is never dialled unless it was allowed
    """

    async def fetch(self, task: Task) -> Answer | Failure: ...

    async def fetch_start(self, task: Task, most: int) -> Answer | Failure:
        """One hop, of any content type; a body of more than `most` bytes is cut there, with a note (`CUT_SHORT`)."""
        ...

    async def close(self) -> None: ...

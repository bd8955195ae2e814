"""Traces: where the spans of visits go."""

from typing import Protocol

from trotline.model.span import Span


class Tracer(Protocol):
    """Takes spans of visits that are over. Never blocks and never fails: what cannot be sent is dropped."""

    def wants(self) -> bool:
        """Is the next visit one of the sample?"""
        ...

    def record(self, span: Span) -> None:
        """Send it, later, with its parts."""
        ...

    async def close(self) -> None:
        """Send what is left, for some seconds at most."""
        ...

"""What happened to every URL: the visits, kept where the records are kept."""

from collections.abc import Sequence
from typing import Protocol

from trotline.model.record_row import Row
from trotline.model.visit_row import VisitRow


class Ledger(Protocol):
    """V1 the same visit twice is one line; V2 when `log` returns, it is durable; V3 `story` is in order of time.

    A sink that keeps visits takes them with the records (`Sink.write`), in one transaction.
    """

    async def log(self, visits: Sequence[VisitRow]) -> None: ...

    async def story(self, fingerprints: Sequence[int], url: str = "", limit: int = 200) -> list[VisitRow]:
        """The newest visits of these identities, and of this very URL; the oldest first."""
        ...

    async def rows(self, urls: Sequence[str], limit: int = 200) -> list[Row]:
        """The rows whose last sighting was on one of these pages."""
        ...

    async def close(self) -> None: ...

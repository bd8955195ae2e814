"""What pages said about their version when they were last read."""

from collections.abc import Sequence
from typing import Protocol

from trotline.model.http_validator import Validator


class Validators(Protocol):
    """V1 what was remembered is recalled by later jobs, until something newer is remembered for the page
    V2 a validator vouches for rows: it is never recalled for a sink, or for code, other than those it was stored with
    V3 forgetting is always allowed: the page is then fetched whole. `ValidatorsError` means just that to a worker

    Pages are named by `rules.conditional_requests.page_of`: the route, the task, and the URL that was asked.
    """

    async def recall(self, page: int) -> Validator | None: ...

    async def remember(self, seen: Sequence[tuple[int, Validator]]) -> None:
        """To be called only after the frontier has accepted the pages' settles."""
        ...

    async def close(self) -> None: ...

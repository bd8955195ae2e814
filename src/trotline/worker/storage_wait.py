"""How long a worker waits for its archive or its sink, for the progress line: a slow one looks like a crawl that stands
still, and one that is frozen refuses nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trotline.model.time import Seconds

SLOW: Seconds = 5.0
"""A batch that takes longer is worth a word: on a server that is well it takes less than a second."""
SILENT: Seconds = 15.0
"""After this time without an answer it counts as unreachable, and an alert may follow."""


class StorageWait:
    def __init__(self, what: str, now: Callable[[], Seconds]) -> None:
        self._what = what
        self._now = now
        self._since: Seconds | None = None
        self._last: Seconds = 0.0

    @contextmanager
    def one(self) -> Iterator[None]:
        """One write of a batch."""
        self._since = began = self._now()
        try:
            yield
        finally:
            self._since, self._last = None, self._now() - began

    def text(self, more: bool) -> str:
        """Empty: it is fast enough. In steps: each new text is sent to the supervisor. `more`: visits wait for it."""
        under_way = 0.0 if self._since is None else self._now() - self._since
        if under_way >= SLOW:
            state = "unreachable" if under_way >= SILENT else "slow"
            return f"{self._what} is {state}: no answer for more than {under_way // SLOW * SLOW:.0f} s"
        if self._last >= SLOW and (more or self._since is not None):
            return f"{self._what} is slow: a batch took {self._last:.0f} s"
        return ""

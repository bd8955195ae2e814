"""How long a worker waits for its archive, for the progress line: a slow one looks like a crawl that stands still."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trotline.model.time import Seconds

SLOW: Seconds = 5.0
"""A batch that takes longer is worth a word: on a server that is well it takes less than a second."""


class ArchiveWait:
    def __init__(self, now: Callable[[], Seconds]) -> None:
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

    def text(self) -> str:
        """Empty: it is fast enough. In steps: each new text is sent to the supervisor."""
        under_way = 0.0 if self._since is None else self._now() - self._since
        if under_way >= SLOW:
            return f"archive is slow: no answer for more than {under_way // SLOW * SLOW:.0f} s"
        if self._last >= SLOW:
            return f"archive is slow: a batch took {self._last:.0f} s"
        return ""

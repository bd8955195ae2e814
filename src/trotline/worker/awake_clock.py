"""A clock that stands still while this process does."""

from trotline.model.time import Seconds


class Waking:
    """How long something has been so, in time that we were awake ourselves.

    Whoever looks much later than it meant to was stopped, or starved of the processor, and whatever it watches most
    likely with it: that time is nobody's fault. Only that time: the rest counts, however often it happens.
    """

    def __init__(self, now: Seconds, most: Seconds) -> None:
        """`most`: what may lie between two looks."""
        self._most = most
        self._looked_at = now
        self._awake = 0.0
        self._before: dict[str, tuple[Seconds, Seconds]] = {}
        self._seen: dict[str, tuple[Seconds, Seconds]] = {}

    def look(self, now: Seconds) -> None:
        self._awake += min(now - self._looked_at, self._most)
        self._looked_at = now
        # What is not asked for between two looks is forgotten.
        self._before, self._seen = self._seen, {}

    def lasts(self, what: str, since: Seconds) -> Seconds:
        """How long `what` has been so, which began at `since`, by the clock of the looks."""
        known = self._before.get(what)
        if known is None or known[0] != since:
            # Clamped at 0: `since` comes from a child's marker and may be in the future.
            known = since, self._awake - min(max(0.0, self._looked_at - since), self._most)
        self._seen[what] = known
        return self._awake - known[1]

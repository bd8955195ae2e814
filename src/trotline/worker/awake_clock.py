"""Elapsed time without the time in which this process was suspended."""

from trotline.model.time import Seconds


class AwakeClock:
    """Measures how long states last, without suspensions (SIGSTOP, paused container, CPU starvation).

    A tick that comes later than `most` after the last one means that this process was suspended, and most likely the
    processes that it watches, too. The excess is not counted.
    """

    def __init__(self, now: Seconds, most: Seconds) -> None:
        """`most`: the longest interval between two ticks that counts."""
        self._most = most
        self._ticked_at = now
        self._awake = 0.0
        self._before: dict[str, tuple[Seconds, Seconds]] = {}
        self._seen: dict[str, tuple[Seconds, Seconds]] = {}

    def tick(self, now: Seconds) -> None:
        self._awake += min(now - self._ticked_at, self._most)
        self._ticked_at = now
        # States that were not measured since the last tick are dropped.
        self._before, self._seen = self._seen, {}

    def lasts(self, what: str, since: Seconds) -> Seconds:
        """How long `what`, which began at `since`, has lasted."""
        known = self._before.get(what)
        if known is None or known[0] != since:
            # Clamped at 0: `since` comes from a child's marker and may be in the future.
            known = since, self._awake - min(max(0.0, self._ticked_at - since), self._most)
        self._seen[what] = known
        return self._awake - known[1]

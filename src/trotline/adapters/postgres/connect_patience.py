"""How long callers wait for a server that is starting or has no free connection."""

from trotline.model.time import Moment, Seconds

_ANOTHER: Seconds = 30.0
"""A failure so long after the last one begins another outage."""


class ConnectPatience:
    """One outage is waited for once: callers that come when that time is over get the error at once."""

    def __init__(self, within: Seconds) -> None:
        self._within = within
        self._since: Moment | None = None
        self._last: Moment = 0.0

    def left(self, now: Moment) -> Seconds:
        """An attempt has failed: how long may be waited for the next ones? 0: no more."""
        if self._since is None or now - self._last > _ANOTHER:
            self._since = now
        self._last = now
        return max(0.0, self._since + self._within - now)

    def reset(self) -> None:
        """An attempt has succeeded."""
        self._since = None

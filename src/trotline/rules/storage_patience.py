"""The retry deadline for local files (`storage_patience`): a server recovers by itself, a full disk does not."""

from trotline.model.time import Seconds


class RetryDeadline:
    """Expires when errors have lasted for `longest`; reset by a success."""

    def __init__(self, longest: Seconds) -> None:
        self.longest = longest
        self._since: Seconds | None = None

    def left(self, now: Seconds) -> Seconds:
        """The time left, after an error; 0: expired."""
        if self._since is None:
            self._since = now
        return max(0.0, self._since + self.longest - now)

    def renew(self) -> None:
        self._since = None


def countdown(left: Seconds) -> str:
    """The time until the run ends, in minutes, at the end in seconds."""
    return f"the run ends in {left / 60:.0f} min" if left >= 90 else f"the run ends in {left:.0f} s"


def expired(what: str, longest: Seconds) -> str:
    return f"{what}, and has been for {_length(longest)} (storage_patience)"


def _length(seconds: Seconds) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:g} s"

"""How long trouble with a file of this machine may last. A server comes back by itself, a full disk does not."""

from trotline.model.time import Seconds


class Patience:
    """Runs out when trouble has lasted for `longest`; begins anew whenever all is well. Time is given."""

    def __init__(self, longest: Seconds) -> None:
        self.longest = longest
        self._since: Seconds | None = None

    def left(self, now: Seconds) -> Seconds:
        """There is trouble: how much longer may it last? 0: no longer."""
        if self._since is None:
            self._since = now
        return max(0.0, self._since + self.longest - now)

    def renew(self) -> None:
        """All is well."""
        self._since = None


def told(left: Seconds) -> str:
    """When the run ends if nothing changes: in whole minutes, and at the end in seconds."""
    return f"the run ends in {left / 60:.0f} min" if left >= 90 else f"the run ends in {left:.0f} s"


def used_up(what: str, longest: Seconds) -> str:
    return f"{what}, and has been for {_length(longest)} (storage_patience)"


def _length(seconds: Seconds) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:g} s"

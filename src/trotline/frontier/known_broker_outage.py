"""Remembers that a broker did not answer, for all jobs of this process: only the first view of one waits for it."""

from trotline.model.time import Seconds


class KnownBrokerOutage:
    """Of one broker."""

    def __init__(self) -> None:
        self._said = ""
        self._until: Seconds = 0.0

    def found(self, said: str, until: Seconds) -> None:
        self._said, self._until = said, until

    def at(self, now: Seconds) -> str:
        """What was found; empty if it answered, or if it is to be asked again."""
        return self._said if now < self._until else ""

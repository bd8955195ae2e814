"""Logs an outage once when it begins, and once when it is over."""

import logging


class OutageLog:
    def __init__(self, log: logging.Logger, event: str = "frontier.unreachable") -> None:
        self._log = log
        self._event = event
        self._outage = False

    def report(self, why: str) -> None:
        """`why`: the error of a call; empty after a success."""
        if why and not self._outage:
            self._log.warning("%s %s", self._event, why, extra={"event": self._event})
        elif self._outage and not why:
            self._log.info("%s: over", self._event, extra={"event": f"{self._event}.over"})
        self._outage = bool(why)

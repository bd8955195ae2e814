"""An outage in the log: once when it begins, however often the server is asked meanwhile."""

import logging


class OutageLog:
    """The views say what holds a worker back. A line for every try would bury theirs."""

    def __init__(self, log: logging.Logger, event: str = "frontier.away") -> None:
        self._log = log
        self._event = event
        self._away = False

    def hear(self, why: str) -> None:
        """`why`: the error of a try; empty after a try that went well."""
        if why and not self._away:
            self._log.warning("%s %s", self._event, why)
        elif self._away and not why:
            self._log.info("%s: over", self._event)
        self._away = bool(why)

"""Failures of proxies themselves, logged for the operator."""

import asyncio
import logging

from trotline.model.time import Seconds

log = logging.getLogger("trotline.proxy")

LOG_AGAIN: Seconds = 60.0
"""Interval at which a lasting failure is logged again."""


class FaultLog:
    """Logs a failure once, and again while it lasts."""

    def __init__(self, level: int = logging.WARNING) -> None:
        self._level = level
        self._logged: tuple[str, Seconds] = ("", 0.0)

    def note(self, why: str) -> None:
        logged, until = self._logged
        now = asyncio.get_running_loop().time()
        if logged != why or now >= until:
            self._logged = (why, now + LOG_AGAIN)
            log.log(self._level, "proxy.failed %s; pages wait for it", why)

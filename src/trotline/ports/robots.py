"""What a site's robots.txt says."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import msgspec

from trotline.model.proxy import Way
from trotline.model.time import Seconds

UNREADABLE = "robots.txt: "
"""Prefix of the reason of a Permission whose robots.txt could not be read."""

Marked = AbstractContextManager[None]
"""Entered around parsing and matching of the site's text, so that a hang or crash there has a suspect."""
UNMARKED: Marked = nullcontext()


class Permission(msgspec.Struct, frozen=True):
    allowed: bool
    delay: Seconds = 0.0
    """Crawl-delay for us; 0 when it names none."""
    ask_again: Seconds = 0.0
    """Not allowed only because robots.txt could not be read (5xx, unreachable): ask again after this."""
    why: str = ""
    throttled: bool = False
    """It could not be read because the site asks for quiet, for as long as `ask_again`."""
    way_failed: bool = False
    """It could not be read because the proxy failed: nothing is known about the site."""
    asked: bool = True
    """False: no server could be asked. If it is allowed all the same, the page's own visit reports why."""


class Robots(Protocol):
    async def ask(self, url: str, marked: Marked = UNMARKED, way: Way | None = None) -> Permission:
        """May we fetch it? Reads robots.txt at most once per origin and day, through the same way as the page."""
        ...

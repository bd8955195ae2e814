"""How a lease ends. Values with their data, not exceptions."""

import msgspec

from trotline.model.task import Task
from trotline.model.time import Seconds


class Done(msgspec.Struct, frozen=True, tag=True):
    """The visit is over and its records are stored; or the page was dropped for the reason in `why`."""

    why: str = ""
    """Empty when the page was read; else why it was dropped: "gone: 404", "refused: robots.txt"."""


class Retry(msgspec.Struct, frozen=True, tag=True):
    """Try again after `wait`, at a later priority; this attempt counts."""

    wait: Seconds
    why: str


class Snooze(msgspec.Struct, frozen=True, tag=True):
    """Try again after `wait`; no attempt is counted. `task` replaces the old one (a redirect moved it)."""

    wait: Seconds
    why: str
    task: Task | None = None


class Bury(msgspec.Struct, frozen=True, tag=True):
    """Into the graveyard, with the reason; an operator can revive it."""

    why: str
    """"verdict: detail", so that `trotline dead --why blocked` finds it."""
    detail: str = ""
    """What helps to understand it: a traceback's place, headers of the answer. Never a secret."""


Outcome = Done | Retry | Snooze | Bury

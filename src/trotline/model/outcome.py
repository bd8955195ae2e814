"""Outcomes of a lease: done, retry, snooze, bury. Values, not exceptions."""

import msgspec

from trotline.model.task import Task
from trotline.model.time import Seconds


class Done(msgspec.Struct, frozen=True, tag=True):
    """The page was read and its records are stored; or it was dropped for the reason in `why`."""

    why: str = ""
    """Why it was dropped: "gone: 404", "refused: robots.txt"; empty if it was read."""


class Retry(msgspec.Struct, frozen=True, tag=True):
    """Retry after `wait`, at a lower priority; this attempt counts."""

    wait: Seconds
    why: str


class Snooze(msgspec.Struct, frozen=True, tag=True):
    """Retry after `wait` without counting an attempt. `task` replaces the old one (redirects)."""

    wait: Seconds
    why: str
    task: Task | None = None


class Bury(msgspec.Struct, frozen=True, tag=True):
    """Move to the graveyard (dead-letter queue), with the reason; an operator can revive it."""

    why: str
    """"verdict: detail", so that `trotline dead --why blocked` finds it."""
    detail: str = ""
    """Details: a traceback, headers of the response. Never a secret."""


Outcome = Done | Retry | Snooze | Bury

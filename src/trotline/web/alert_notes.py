"""The alerts of a job as the leader keeps them in its note: what pages show of them."""

from typing import Literal

import msgspec

from trotline.model.time import Moment

NOTE = "alerts"


class AlertLine(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    object: str = ""
    """What it is about, if a job can have several: a host, a worker, a field."""
    state: Literal["pending", "firing", "resolved"] = "pending"
    severity: Literal["warning", "critical"] = "warning"
    text: str = ""
    next: str = ""
    """A command that shows more."""
    since: Moment = 0.0
    ended_at: Moment | None = None


class AlertLines(msgspec.Struct, frozen=True, kw_only=True):
    alerts: tuple[AlertLine, ...] = ()
    more: dict[str, int] = {}
    """By rule: objects that are only counted."""

    @property
    def firing(self) -> list[AlertLine]:
        """The critical ones first."""
        found = [one for one in self.alerts if one.state == "firing"]
        return sorted(found, key=lambda one: (one.severity != "critical", one.since))


def decode(data: bytes) -> AlertLines:
    """None at all, if another program damaged it."""
    try:
        return msgspec.msgpack.decode(data, type=AlertLines)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return AlertLines()

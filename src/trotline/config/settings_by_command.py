"""Which settings have an effect on which command.

A flag that a command does not know is refused by the command line. What stands in the environment or in a settings file
is there for all of them: a command that starts or does work says which of it has no effect on itself, and those that
only look and steer take no more than the places.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from trotline.config.settings import NAMES, Settings, given

_GUARD = {"allow_private", "allow", "proxy", "proxy_mode"}
_PLACES = {"frontier", "sink"}
_LOGS = {"log_format", "log_level"}
_SHARE = {"pools", "regions", "routes"}
"""The part of a fleet's work that a worker takes: a run takes all of it."""
_DEVELOPMENT = {"cache"}
_NOT_IN_LAB = {"archive", "inbox", "processes", "slots", "max_pages", "max_bytes", "max_time"}
USED: dict[str, frozenset[str]] = {
    "run": frozenset(NAMES) - _SHARE,
    "work": frozenset(NAMES) - _DEVELOPMENT,
    "fleet": frozenset(NAMES) - {"processes"} - _DEVELOPMENT,
    "lab": frozenset(NAMES) - _SHARE - _DEVELOPMENT - _NOT_IN_LAB,
    "start": frozenset(_PLACES | _LOGS | {"inbox", "max_pages", "max_bytes", "proxies"}),
    "write": frozenset({"sink"} | _LOGS),
    "coordinate": frozenset(_PLACES | _LOGS | {"archive", "inbox", "proxies", "metrics"}),
    "push": frozenset(_PLACES | {"proxies"}),
    "web": frozenset(_PLACES | {"proxies"}),
    "reparse": frozenset({"sink", "archive", "processes", "memory", "frontier"}),
    "try": frozenset(_GUARD | {"proxies"}),
    "fetch": frozenset(_GUARD | _PLACES | {"inbox", "proxies", "processes", "slots", "memory"}),
    "shell": frozenset(_GUARD | {"proxies"}),
}
"""By command: what has an effect on it."""


def unused(command: str, environment: Mapping[str, str], folder: Path) -> list[str]:
    """What was set for all commands and has no effect on this one, each with those that it has one on."""
    used = USED.get(command)
    if used is None:
        return []
    return [
        f"{place} has no effect on trotline {command}; it is for {_who_uses(name)}"
        for name, place in given(environment, folder).items()
        if name not in used and name not in _PLACES
    ]


def narrowed(command: str, settings: Settings) -> Settings:
    """Without what has no effect on the command: so it really has none."""
    used = USED.get(command, frozenset(NAMES))
    usual = Settings()
    return msgspec.structs.replace(settings, **{name: getattr(usual, name) for name in NAMES if name not in used})


def _who_uses(name: str) -> str:
    *others, last = (command for command, used in USED.items() if name in used)
    return f"{', '.join(others)} and {last}" if others else last

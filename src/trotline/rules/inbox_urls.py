"""Options of an inbox's URL that all technologies share: `inbox=NAME[&idle=TIME][&trust=yes]`."""

from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from trotline.model.time import Seconds, seconds


class InboxOptions(NamedTuple):
    server: str
    """The URL without the options of the inbox."""
    name: str
    idle: Seconds | None
    trusted: bool
    """Producers may set all fields of a task."""


def split(url: str) -> InboxOptions:
    """ValueError says what is wrong. The name is not checked: what it may contain differs."""
    place, _, query = url.partition("?")
    words = dict(parse_qsl(query))
    name, idle, trust = words.pop("inbox", ""), words.pop("idle", ""), words.pop("trust", "no")
    if trust not in ("yes", "no"):
        raise ValueError("trust= is yes (producers may set whatever the spider's author may) or no")
    rest = f"?{urlencode(words, safe=':/')}" if words else ""
    return InboxOptions(place + rest, name, seconds(idle) if idle else None, trust == "yes")

"""The URL of an inbox. Without the client library: it is parsed by commands that do not connect.

redis://HOST:PORT/0?inbox=NAME[&end=left][&idle=TIME][&trust=yes] and all other forms of connect.py with these options
"""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from trotline.model.time import Seconds
from trotline.rules.inbox_urls import split

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
OWN = "trotline:"
"""Begin of our own keys: an inbox there could be one of them."""
HINT = 'Write it as "redis://HOST:PORT/0?inbox=NAME".'


class Address(NamedTuple):
    server: str
    """The URL without the options of the inbox."""
    name: str
    side: str
    """The end of the list with the oldest entries."""
    idle: Seconds | None
    trusted: bool
    """Producers may set all fields of a task."""


def parse(url: str) -> Address:
    """ValueError says what is wrong."""
    options = split(url)
    if not NAME.fullmatch(options.name) or options.name.startswith(OWN):
        raise ValueError(f"the URL has no inbox name, or an invalid one: letters, digits, . _ : and -. {HINT}")
    place, _, query = options.server.partition("?")
    words = dict(parse_qsl(query))
    end = words.pop("end", "right")
    if end not in ("left", "right"):
        raise ValueError("end= is left (producers use RPUSH) or right (LPUSH)")
    rest = f"?{urlencode(words)}" if words else ""
    return Address(place + rest, options.name, end.upper(), options.idle, options.trusted)

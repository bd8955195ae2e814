"""The URL of an inbox. Without the client library: it is parsed by commands that do not connect.

redis://HOST:PORT/0?inbox=NAME[&end=left][&idle=TIME][&trust=yes] and all other forms of connect.py with these options
"""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from trotline.model.time import Seconds, seconds

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
    place, _, query = url.partition("?")
    words = dict(parse_qsl(query))
    name, end, idle = words.pop("inbox", ""), words.pop("end", "right"), words.pop("idle", "")
    trust = words.pop("trust", "no")
    if not NAME.fullmatch(name) or name.startswith(OWN):
        raise ValueError(f"the URL has no inbox name, or an invalid one: letters, digits, . _ : and -. {HINT}")
    if end not in ("left", "right"):
        raise ValueError("end= is left (producers use RPUSH) or right (LPUSH)")
    if trust not in ("yes", "no"):
        raise ValueError("trust= is yes (producers may set whatever the spider's author may) or no")
    rest = f"?{urlencode(words)}" if words else ""
    return Address(place + rest, name, end.upper(), seconds(idle) if idle else None, trust == "yes")

"""URLs of archives: `file:FOLDER?roll=256MiB&keep=90d`, `s3://BUCKET/PREFIX?endpoint=http://HOST:PORT`."""

import re
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import parse_qsl

from trotline.model.limits import MIB
from trotline.model.time import Seconds, seconds

LEAST_ROLL, MOST_ROLL = MIB, 1024 * MIB
_SIZE = re.compile(r"(\d{1,4})(MiB|GiB)")
COMMON = frozenset({"roll", "roll_time", "keep"})
LEAST_KEEP: Seconds = 3600.0


class ArchiveUrl(NamedTuple):
    place: str
    """Without its options."""
    options: dict[str, str]
    roll_size: int | None
    """None: the default."""
    roll_time: Seconds | None
    keep: Seconds | None = None
    """How long captures are kept; None: for ever."""


def read(url: str, known: Collection[str] = ()) -> ArchiveUrl:
    """`known`: options of this kind of archive; ValueError says what else would work."""
    place, _, query = url.strip().partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    options = dict(given)
    if len(options) < len(given):
        raise ValueError("an option is given twice; remove one of them")
    names = sorted({*COMMON, *known})
    if odd := next((name for name in options if name not in names), None):
        raise ValueError(f"{odd!r} is not an option of an archive; there are {', '.join(names)}")
    keep = _keep(options.get("keep"))
    return ArchiveUrl(place, options, _size(options.get("roll")), _time(options.get("roll_time")), keep)


def keep_of(url: str) -> Seconds | None:
    """How long captures are kept, of a URL that was read before: also of archives of other packages."""
    return _keep(dict(parse_qsl(url.partition("?")[2])).get("keep"))


def _keep(text: str | None) -> Seconds | None:
    if text is None:
        return None
    try:
        found = seconds(text)
    except ValueError:
        found = 0.0
    if found < LEAST_KEEP:
        raise ValueError(f"keep={text} is not a time of an hour or more, like 90d")
    return found


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    found = int(match[1]) * (MIB if match[2] == "MiB" else 1024 * MIB) if match else 0
    if not LEAST_ROLL <= found <= MOST_ROLL:
        raise ValueError(f"roll={text} is not a size from 1MiB to 1GiB")
    return found


def _time(text: str | None) -> Seconds | None:
    if text is None:
        return None
    try:
        found = seconds(text)
    except ValueError:
        found = 0.0
    if not 1.0 <= found <= 86_400.0:
        raise ValueError(f"roll_time={text} is not a time from 1s to 24h")
    return found

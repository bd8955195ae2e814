"""Paging through rows: the range of a prefix, and positions that callers hand back unread."""

import base64
import binascii
from collections.abc import Sequence

import msgspec

from trotline.errors import SettingsError

MOST_ROWS = 1_000
"""Rows of one page, at most."""
BY_KEY, BY_URL = "k", "u"
"""Rows whose key starts with the prefix come first, then those of which only the URL does."""

Place = list[str | int]
"""BY_KEY or BY_URL, and a position there. Empty: the beginning."""

_LAST, _SURROGATES, _AFTER_SURROGATES = 0x10FFFF, 0xD800, 0xE000
_decode = msgspec.json.Decoder(list[str | int]).decode


def end_of(prefix: str) -> str | None:
    """The first text, by code points, behind all that start with the prefix; None: there is none."""
    for place in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[place]) + 1
        if code <= _LAST:
            return prefix[:place] + chr(_AFTER_SURROGATES if code == _SURROGATES else code)
    return None


def page_size(limit: int) -> int:
    return max(1, min(MOST_ROWS, limit))


def packed(place: Place) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def unpacked(after: str, *forms: Sequence[str | type]) -> Place:
    """The position, which has one of these forms: BY_KEY or BY_URL, and the types of what follows."""
    if not after:
        return []
    try:
        place = _decode(base64.b64decode(after + "=" * (-len(after) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise _refused(after) from error
    for name, *types in forms:
        if place[:1] == [name] and [type(value) for value in place[1:]] == types:
            return place
    raise _refused(after)


def _refused(after: str) -> SettingsError:
    return SettingsError(
        f"{after[:40]!r} is not a position in these rows", hint="Start with the first page: without a position."
    )

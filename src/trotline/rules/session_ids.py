"""Session ids in addresses: recognised by their look, and believed to be such only if pages confirm it.

`?sid=6d1f0c...` can be a visitor's session or the id of an article, and /commit/6d1f0c.../ is a page of its own. So
the pages decide: if addresses that differ only in the id give the same text, it is a session; if they give different
ones, it is not, whatever it looks like.
"""

import re

_MARKS = ("sess", "sid=", "zenid=", "cftoken=", "/(")
_SESSION = re.compile(
    r"([?&;/])(?:(?:\w{0,20}sess(?:ion)?_?(?:id)?|sid|oscsid|zenid|cftoken)=(?=[^&;/?]*\d)(?:[0-9a-z]{16,}|[0-9a-f\-]{36})(?=[&;/?]|$)"
    r"|\([a-z]\([a-z0-9]{20,}\)\))",
    re.IGNORECASE,
)
"""?sid=6d1f0c..., ;sessionid=..., and ASP.NET's /(S(...))/. Short or wordy values are ids of the site's own."""
_TOKEN = re.compile(r"/(?=[a-f]*[0-9])[0-9a-f]{24,64}(?=/)", re.IGNORECASE)
"""/6d1f0c.../shop/list: a long hexadecimal number as one of the folders."""
_SHORTEST = len("http://a/") + 24
_CONFIRMED = 8
"""Pages of a lane that were the same under another id, before ids of that lane count as sessions."""
_PATTERNS = 8_192
_LANES = 4_096


def without_session(url: str) -> str | None:
    """The address without what looks like a session id; None if nothing does."""
    # Plain looks first: they cost a tenth of the patterns, and nearly every address ends there.
    if "?" in url or ";" in url or "(" in url:
        text = url.lower()
        for mark in _MARKS:
            if mark in text:
                without = _SESSION.sub(r"\1", url)
                if without != url:
                    return without
    if len(url) > _SHORTEST and _TOKEN.search(url, 8):
        return _TOKEN.sub("/{id}", url)
    return None


class SessionWatch:
    """Which ids are sessions, from the pages that were read under them."""

    def __init__(self) -> None:
        self._patterns: dict[str, tuple[int, int, int]] = {}
        """Address without its id -> first text, pages with that text again, pages with another."""
        self._confirmed: dict[str, int] = {}
        """Lane -> pages that were the same under another id."""

    def read(self, lane: str, pattern: str, text: int) -> None:
        """A page was read under this address; `text` is the number of its text."""
        first, same, other = self._patterns.pop(pattern, (text, -1, 0))
        again = text == first
        self._patterns[pattern] = (first, same + again, other + (not again))
        if len(self._patterns) > _PATTERNS:
            del self._patterns[next(iter(self._patterns))]
        if again and same >= 0:
            self._confirmed[lane] = self._confirmed.pop(lane, 0) + 1
            if len(self._confirmed) > _LANES:
                del self._confirmed[next(iter(self._confirmed))]

    def is_session(self, lane: str, pattern: str) -> bool:
        if self._confirmed.get(lane, 0) < _CONFIRMED:
            return False
        _, same, other = self._patterns.get(pattern, (0, 0, 0))
        return other <= same

"""Session ids in URLs: recognised by their form, and confirmed by the pages.

`?sid=6d1f0c...` can be a visitor's session or the id of an article, and /commit/6d1f0c.../ is a page of its own. If
URLs that differ only in the id have the same text, it is a session id; if their texts differ, it is not.
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
"""Pages of a lane with the same text under another id, before ids of that lane count as session ids."""
_PATTERNS = 8_192
_LANES = 4_096


def without_session(url: str) -> str | None:
    """The URL without what looks like a session id; None if nothing does."""
    # Substring checks first: a tenth of the cost of the patterns, and enough for nearly every URL.
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


class SessionDetector:
    """Detects session ids by the texts of the pages."""

    def __init__(self) -> None:
        self._patterns: dict[str, tuple[int, int, int]] = {}
        """URL without its id -> first text, pages with the same text, pages with another."""
        self._confirmed: dict[str, int] = {}
        """Lane -> pages with the same text under another id."""

    def read(self, lane: str, pattern: str, text: int) -> None:
        """Record a page; `text` is the hash of its text."""
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

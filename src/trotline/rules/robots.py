"""Which URLs a robots.txt surely says nothing about.

Asking the real matcher costs tens of microseconds, and nearly every URL of a crawl is allowed. This looks only for
reasons to ask: a URL that shares no literal with any Disallow line of any group cannot be disallowed.
"""

import re

_MOST_PATTERNS = 200
_SIMPLE = re.compile(r"[A-Za-z0-9/_.?=&,:;@+~-]*")
_SIMPLE_PATTERN = re.compile(r"[/*][A-Za-z0-9/_.?=&,:;@+~*$-]*")


_AGENT_LINE = re.compile(
    r"^([ \t]*user[ \t-]?agent[ \t]*[: \t][ \t]*)([A-Za-z_-]++|\*(?=[ \t]))[^\S\r\n]*[^\s#][^\r\n#]*", re.I | re.M
)
"""A line that names an agent and says more: `User-agent: FooBot/2.1`, `User-agent: Foo Bar`."""


def products_only(text: str) -> str:
    """The file with the names of agents cut to their product tokens, which is all that RFC 9309 compares.

    The matcher would take `User-agent: Foo Bar` for a group of its own; authors mean Foo, and Google reads it so.
    """
    return _AGENT_LINE.sub(r"\1\2", text)


class Prefilter:
    """Built once per robots.txt."""

    def __init__(self, text: str) -> None:
        self._starts: tuple[str, ...] = ()
        self._parts: tuple[str, ...] = ()
        self._usable = self._learn(text)

    @property
    def empty(self) -> bool:
        """Is nothing disallowed to anybody?"""
        return self._usable and not self._starts and not self._parts

    def surely_allowed(self, path: str) -> bool:
        """May `path` (with its query) be fetched, without a closer look?"""
        if not self._usable or path.startswith(self._starts) or not _SIMPLE.fullmatch(path):
            return False
        return not any([part in path for part in self._parts])  # noqa: C419 - a list is faster than a generator here

    def _learn(self, text: str) -> bool:
        starts: set[str] = set()
        parts: set[str] = set()
        for line in text.splitlines():
            pattern = _disallowed(line)
            if not pattern:
                continue
            if not _SIMPLE_PATTERN.fullmatch(pattern) or len(starts) + len(parts) >= _MOST_PATTERNS:
                return False
            if "*" not in pattern:
                # Without its "$" the pattern matches more, which only means a closer look more often.
                starts.add(pattern.replace("$", ""))
                continue
            longest = max(re.split(r"[*$]", pattern), key=len)
            if len(longest) < 2:
                return False
            parts.add(longest)
        self._starts, self._parts = tuple(starts), tuple(parts)
        return True


def _disallowed(line: str) -> str:
    """The value of a line that could be read as Disallow, however it is spelt; empty for any other line."""
    line = line.partition("#")[0].strip()
    if line[:2].lower() != "di":
        return ""
    name, colon, value = line.partition(":")
    if not colon or len(name.split()) > 1:
        value = "".join(line.split(None, 1)[1:])
    return value.strip()

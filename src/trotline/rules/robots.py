"""Prepares a robots.txt for the matcher (Protego): our groups of it, and a fast path for URLs that are surely allowed.

The matcher costs tens of microseconds per URL, and nearly every URL of a crawl is allowed. A URL that shares no literal
with any Disallow line of any group cannot be disallowed.
"""

import re

_MOST_PATTERNS = 200
_SIMPLE = re.compile(r"[A-Za-z0-9/_.?=&,:;@+~-]*")
_SIMPLE_PATTERN = re.compile(r"[/*][A-Za-z0-9/_.?=&,:;@+~*$-]*")

_AGENT = frozenset({"user-agent", "useragent", "user agent"})
_PRODUCT = re.compile(r"[A-Za-z_-]*")


def for_agent(text: str, agent: str) -> str:
    """The file with the best match for `agent`, and all other agent names replaced by a single one.

    Protego stores every rule once per agent of its group: 500 KiB with as many agents as rules would take minutes and
    gigabytes. Names are cut to their product tokens, as in RFC 9309: Protego would read `User-agent: Foo Bar` as a
    group of its own; authors mean Foo, and Google reads it so.
    """
    lines = text.splitlines()
    named = {number: name for number, line in enumerate(lines) if (name := _agent_named(line))}
    known = agent.strip().lower()
    ours = max(sorted(set(named.values())), key=lambda name: _score(name, known), default="")
    # Longer than our own name, so it never matches a part of it.
    others = "x" * (len(known) + 1)
    for number, name in named.items():
        lines[number] = f"User-agent: {name if name == ours else others}"
    return "\n".join(lines)


def _agent_named(line: str) -> str:
    """The product token of a User-agent line, in lower case; empty for any other line."""
    line = line.partition("#")[0].strip()
    if line[:4].lower() != "user":
        return ""
    field, colon, value = line.partition(":")
    if not colon or field.strip().lower() not in _AGENT:
        if colon and (not value or value[0].isspace()):
            return ""
        value = _after_blanks(line)
    return _product(value.strip().lower())


def _after_blanks(line: str) -> str:
    """The value after `User-agent` or `User agent` without a colon."""
    words = line.split(None, 2)
    if words[0].lower() in _AGENT:
        return " ".join(words[1:])
    return words[2] if len(words) > 2 and " ".join(words[:2]).lower() in _AGENT else ""


def _product(value: str) -> str:
    if value.split(None, 1)[:1] == ["*"]:
        return "*"
    token = _PRODUCT.match(value)
    # 360Spider starts with a digit, so it is not a product token; it is compared as it is written.
    return token[0] if token and token[0] else value.replace("*", "") or value


def _score(name: str, agent: str) -> int:
    """Protego's order of matches: the length of a name that starts at a word boundary of our agent."""
    if name == "*":
        return 1
    found = agent.find(name)
    while found != -1:
        before = agent[found - 1 : found]
        if not (before.isalnum() or before in ("-", "_")):
            return 1 + len(name)
        found = agent.find(name, found + 1)
    return 0


class Prefilter:
    """The fast path; built once per robots.txt."""

    def __init__(self, text: str) -> None:
        self._starts: tuple[str, ...] = ()
        self._parts: tuple[str, ...] = ()
        self._usable = self._learn(text)

    @property
    def empty(self) -> bool:
        """Is there no Disallow at all?"""
        return self._usable and not self._starts and not self._parts

    def surely_allowed(self, path: str) -> bool:
        """Is `path` (with its query) allowed without asking the matcher?"""
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
                # Without its "$" the pattern matches more: the matcher is asked more often.
                starts.add(pattern.replace("$", ""))
                continue
            longest = max(re.split(r"[*$]", pattern), key=len)
            if len(longest) < 2:
                return False
            parts.add(longest)
        self._starts, self._parts = tuple(starts), tuple(parts)
        return True


def _disallowed(line: str) -> str:
    """The value of a line that could be parsed as Disallow, also misspelt; empty for any other line."""
    line = line.partition("#")[0].strip()
    if line[:2].lower() != "di":
        return ""
    name, colon, value = line.partition(":")
    if not colon or len(name.split()) > 1:
        value = "".join(line.split(None, 1)[1:])
    return value.strip()

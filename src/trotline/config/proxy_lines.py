"""A plain list of proxies: one URL a line, `#` comments, optional ` weight=0.5 region=eu`."""

import re
from collections.abc import Iterable

import msgspec

from trotline.model.proxy import Proxy, ProxyMode
from trotline.rules import proxy_logins

MOST_LINES = 100_000
LONGEST_LINE = 2_048
NAMED = 5
"""Bad lines that a message names; further ones are counted."""

REGION = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_BARE = re.compile(r"[^\s/@]+:\d{1,5}(?::.*)?")
"""host:port or host:port:user:password, as some providers export it."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy of a list."""

    line: int
    proxy: Proxy
    weight: float | None = None
    """None: the pool's."""
    region: str = ""
    """Empty: the pool's."""


class ProxyLines(msgspec.Struct, kw_only=True):
    """What was read from a list. Bad lines lose no other."""

    entries: list[Entry] = []
    bad: list[tuple[int, str]] = []
    """Number and reason; never a part of the line, as that may be a password."""
    has_logins: bool = False

    def complaint(self) -> str:
        """The bad lines in one sentence; empty if there are none."""
        if not self.bad:
            return ""
        named = "; ".join(f"line {number}: {why}" for number, why in self.bad[:NAMED])
        more = f"; and {len(self.bad) - NAMED:,} more" if len(self.bad) > NAMED else ""
        count = "1 line is" if len(self.bad) == 1 else f"{len(self.bad):,} lines are"
        return f"{count} not used: {named}{more}"


class Login(msgspec.Struct, frozen=True):
    """For entries that have none of their own."""

    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return "Login()"


NO_LOGIN = Login()


def read(text: str, mode: ProxyMode = ProxyMode.ADDRESS, login: Login = NO_LOGIN) -> ProxyLines:
    """The proxies in a text. Nothing in it can raise."""
    return read_each(text.split("\n"), mode, login)


def read_each(lines: Iterable[str], mode: ProxyMode = ProxyMode.ADDRESS, login: Login = NO_LOGIN) -> ProxyLines:
    found = ProxyLines()
    for number, line in enumerate(lines, 1):
        if number > MOST_LINES:
            found.bad.append((number, f"a list has at most {MOST_LINES:,} lines; the rest is not read"))
            break
        try:
            entry = entry_of(number, line, mode, login)
        except ValueError as error:
            found.bad.append((number, str(error)))
            continue
        if entry is not None:
            found.entries.append(entry)
            found.has_logins = found.has_logins or "@" in line
    return found


def listed_elsewhere(lines: ProxyLines) -> ProxyLines:
    """Of a list that somebody else serves."""
    lines.entries = [
        msgspec.structs.replace(entry, proxy=msgspec.structs.replace(entry.proxy, listed_elsewhere=True))
        for entry in lines.entries
    ]
    return lines


def entry_of(number: int, line: str, mode: ProxyMode, login: Login) -> Entry | None:
    """None: blank, or a comment. ValueError says what to write instead, without quoting the line."""
    if len(line) > LONGEST_LINE:
        raise ValueError(f"longer than {LONGEST_LINE:,} characters")
    words = _words(line)
    if not words:
        return None
    proxy = _proxy(words[0], mode)
    if login.user and not proxy.user and not proxy.password:
        proxy = msgspec.structs.replace(proxy, user=login.user, password=login.password)
    if template := proxy_logins.own_field_in(proxy.user + proxy.password):
        raise ValueError(f"{template} is filled in only for a gateway: an endpoint in proxies.toml")
    given = dict(map(_option, words[1:]))
    return Entry(line=number, proxy=proxy, weight=given.get("weight"), region=given.get("region", ""))  # type: ignore[arg-type]


def _words(line: str) -> list[str]:
    """Without the comment: a word that begins with #."""
    words = line.lstrip("\ufeff").split()
    comment = next((place for place, word in enumerate(words) if word.startswith("#")), len(words))
    return words[:comment]


def _proxy(text: str, mode: ProxyMode) -> Proxy:
    if "://" not in text and _BARE.fullmatch(text):
        form = "http://<user>:<password>@host:port" if text.count(":") > 1 else "http://host:port"
        raise ValueError(f"not a URL; write it as {form}")
    return Proxy.parse(text, mode)


def _option(word: str) -> tuple[str, float | str]:
    name, equals, value = word.partition("=")
    if not equals or name not in ("weight", "region"):
        raise ValueError("after the URL only weight=0.5 and region=eu are known")
    return (name, weight(value)) if name == "weight" else (name, region(value))


def weight(value: object) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else 0.0
    except ValueError:
        number = 0.0
    if not 0.0 < number <= 1.0:
        raise ValueError("weight must be a number above 0, at most 1; to stop using a proxy, remove its line")
    return number


def region(value: object) -> str:
    if not isinstance(value, str) or not REGION.fullmatch(value):
        raise ValueError("region must be a word like eu or us-east: letters, digits, - _ and .")
    return value.lower()

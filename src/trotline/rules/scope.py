"""The scope of a crawl: hosts, patterns, depth."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

import can_ada
import msgspec

from trotline.rules.urls import Address

HOST = "host"
EXCLUDED = "excluded"
NOT_INCLUDED = "not included"
DEPTH = "depth"
OTHER_HOST = "another host"


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """A URL is in scope if hosts, patterns and depth all allow it."""

    hosts: Collection[str] = frozenset()
    """A host admits itself and its subdomains; with a port ("shop.example:8080") only that port. None: any host."""
    same_host: bool = False
    """Links must stay on the host of their page: the scope of a crawl without hosts."""
    include: Sequence[str] = ()
    """Regular expressions searched in the URL: at least one must be found. None: any URL."""
    exclude: Sequence[str] = ()
    """Regular expressions searched in the URL: none may be found. They win over `include`."""
    max_depth: int | None = None
    """Links from a seed; the seed is 0. None: as deep as the links lead."""

    def __post_init__(self) -> None:
        for name in ("hosts", "include", "exclude"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ValueError(f"scope {name} is one text; write a list: {name}=[{value!r}]")
        if self.max_depth is not None and self.max_depth < 0:
            raise ValueError(f"scope max_depth is {self.max_depth}; write 0 for the seeds alone, or more")
        msgspec.structs.force_setattr(self, "hosts", frozenset(map(_host, self.hosts)))
        for name in ("include", "exclude"):
            msgspec.structs.force_setattr(self, name, tuple(getattr(self, name)))
            _compiled(getattr(self, name))


def out_of_scope(scope: Scope, address: Address, depth: int) -> str | None:
    """The short reason if the URL is out of scope, else None."""
    if scope.hosts and not admits(scope.hosts, address):
        return HOST
    if scope.exclude and _found(scope.exclude, address.url):
        return EXCLUDED
    if scope.include and not _found(scope.include, address.url):
        return NOT_INCLUDED
    return DEPTH if scope.max_depth is not None and depth > scope.max_depth else None


def admits(hosts: Collection[str], address: Address) -> bool:
    """Is the host, or a parent domain, in `hosts`? Constant time in the number of hosts."""
    name = address.lane
    if name in hosts:
        return True
    port = name[len(address.host) :]
    name = address.host
    while name:
        if name in hosts or (port and name + port in hosts):
            return True
        name = name.partition(".")[2]
    return False


def _host(text: str) -> str:
    """The host as addresses spell it: lower case, IDNA, no root dot, no default port."""
    advice = 'write the host alone, like "shop.example" or "shop.example:8080"'
    if not isinstance(text, str) or not text or text != text.strip() or any(mark in text for mark in "/?#@\\"):
        raise ValueError(f"scope host {text!r} is not a host; {advice}")
    try:
        parsed = can_ada.parse(f"http://{text}/")
    except (ValueError, TypeError) as error:
        raise ValueError(f"scope host {text!r} is not a host; {advice}") from error
    host: str = parsed.hostname
    return host.removesuffix(".") + (f":{parsed.port}" if parsed.port else "")


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(map(_pattern, patterns))


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, TypeError) as error:
        raise ValueError(
            f"scope pattern {text!r} is not a regular expression: {error}; "
            r'write it like r"/product/\d+" and put a backslash before . ? + ( ) that are meant literally'
        ) from error


def _found(patterns: Sequence[str], url: str) -> bool:
    return any(pattern.search(url) for pattern in _compiled(tuple(patterns)))

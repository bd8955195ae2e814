"""Cookie jars: one per session, and nothing crosses to a host that it is not for."""

import re
from collections.abc import Collection, Mapping, Sequence
from http.cookies import Morsel, SimpleCookie

from aiohttp import CookieJar
from yarl import URL

from trotline.model.secret import Secret

LARGEST = 4096
"""Bytes of one Set-Cookie; larger ones are ignored, as browsers do."""

_DOMAIN = re.compile(r";\s*domain\s*=\s*\.?([^;]*)", re.IGNORECASE)
_REGISTRY_LABELS = frozenset(
    {"ac", "co", "com", "edu", "gob", "gov", "gouv", "govt", "go", "mil", "ne", "net", "nom", "or", "org", "sch"}
)


class Jar(CookieJar):
    """A jar that refuses cookies for whole registries ("com", "co.uk") and cookies of unreasonable size.

    An address is a host like any other (`unsafe`): a shop on 127.0.0.1 can be logged into.
    """

    def __init__(self) -> None:
        super().__init__(unsafe=True)

    def update_cookies_from_headers(self, headers: Sequence[str], response_url: URL) -> None:
        kept = [header for header in headers if len(header) <= LARGEST and not _for_a_registry(header)]
        super().update_cookies_from_headers(kept, response_url)

    def give(self, cookies: Mapping[str, str | Secret], hosts: Collection[str], *, secure: bool = False) -> None:
        """Put the author's cookies in: for these hosts and what is under them, or for every host if none is named.

        `secure`: never over plain http.
        """
        plain = {name: value.reveal() if isinstance(value, Secret) else value for name, value in cookies.items()}
        if not hosts:
            self.update_cookies(plain)
        for host in hosts:
            self.update_cookies(_bound(plain, host, secure), URL.build(scheme="https", host=host))


def _bound(cookies: Mapping[str, str], host: str, secure: bool) -> list[tuple[str, "Morsel[str]"]]:
    made: SimpleCookie = SimpleCookie()
    for name, value in cookies.items():
        made[name] = value
        made[name]["domain"] = host
        made[name]["path"] = "/"
        if secure:
            made[name]["secure"] = True
    return list(made.items())


def _for_a_registry(header: str) -> bool:
    """Is it set for a domain under which strangers have names? The short rule, not the public suffix list."""
    match = _DOMAIN.search(header)
    if match is None:
        return False
    labels = match[1].strip().lower().split(".")
    if len(labels) == 1:
        return labels[0] not in ("", "localhost")
    return len(labels) == 2 and len(labels[1]) == 2 and labels[0] in _REGISTRY_LABELS

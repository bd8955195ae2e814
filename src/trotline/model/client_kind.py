"""HTTP clients: which one a page is fetched with."""

from enum import StrEnum


class Client(StrEnum):
    PLAIN = "plain"
    """The default: honest about what it is, and the fastest."""
    BROWSER = "browser"
    """TLS, HTTP/2 and headers as a browser sends them (`adapters/browser_like`)."""


EXTRA = {Client.BROWSER: ("wreq", "browser")}
"""Clients that need a package: its name, and the extra of Trotline that installs it."""

"""Does a proxy answer in place of all sites? Recognized by one page that comes from several hosts in a row."""

from trotline.model.answer import FailureKind
from trotline.model.time import Seconds

HOSTS = 3
"""The same page from so many hosts in a row is the proxy's, not theirs."""
PATIENCE: Seconds = 600.0
"""So long pages wait for a captive proxy. Then attempts are counted: the hosts may be parked domains, and a job with
only such pages left must end."""


class CaptiveRun:
    """The last pages that came over plain http through one proxy.

    A captive proxy (login or payment page) answers every request with one page. In a row only: many hosts have the same
    default page, but rarely one after the other without any other page between them.
    """

    def __init__(self) -> None:
        self._page = b""
        self._hosts: set[str] = set()
        self._since: Seconds = 0.0

    def judge(self, host: str, page: bytes, now: Seconds) -> FailureKind | None:
        """Whose failure this page (`captive_pages.page_of`) is; None: it is the site's."""
        if page != self._page or not page:
            self._page, self._hosts, self._since = page, {host}, now
            return None
        if len(self._hosts) < HOSTS:
            self._hosts.add(host)
        if len(self._hosts) < HOSTS:
            return None
        return patience(now - self._since)


def patience(waited: Seconds) -> FailureKind:
    """Of a captive page: whether the page waits for free, or an attempt is counted."""
    return FailureKind.PROXY if waited < PATIENCE else FailureKind.PROXY_REFUSED

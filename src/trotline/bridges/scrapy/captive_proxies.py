"""Recognizes proxies that answer plain http requests in place of the sites: the pages that came through each of them.

One for both middlewares: redirects are seen before Scrapy follows them, pages after they were decompressed.
"""

import time

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from trotline.bridges.scrapy.visits import Visit
from trotline.bridges.scrapy.way_out import verdict_of_failure
from trotline.model.verdict import Verdict
from trotline.rules.captive_pages import SitePages, page_of
from trotline.rules.captive_runs import CaptiveRun, patience

_MOST_PROXIES = 10_000


class CaptiveProxies:
    def __init__(self) -> None:
        self._pages = SitePages()
        self._runs: dict[str, CaptiveRun] = {}

    def verdict(self, visit: Visit, request: Request, response: Response) -> Verdict | None:
        """Notes the response. The verdict if it is the proxy's; None: it is the site's."""
        proxy = visit.way.proxy if visit.way is not None else None
        if proxy is None or not request.url.startswith("http:"):
            return None
        host, now = urlparse_cached(request).hostname or "", time.monotonic()
        location = (response.headers.get("Location") or b"").decode("latin-1")
        page = page_of(host, response.status, location, response.body)
        if len(self._runs) > _MOST_PROXIES:
            self._runs.clear()
        run = self._runs.setdefault(proxy.public, CaptiveRun())
        trouble = run.judge(host, page, now) if response.status == 200 else None
        since = self._pages.captive_since(proxy.public, request.url, page, now)
        if trouble is None and since is not None:
            trouble = patience(now - since)
        return None if trouble is None else verdict_of_failure(visit.lease.task, trouble, "captive page")

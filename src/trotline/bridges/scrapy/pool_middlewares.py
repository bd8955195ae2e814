"""Two downloader middlewares that the add-on puts around downloads through a proxy pool.

`GoOut` is next to the download: it sets the proxy of the lease, and takes it away again before anything else sees the
request. So no spider copies it into its next request, and no cache stores the login. It also judges redirects, which
Scrapy follows before others see them: to a login page, or to the portal of a captive proxy. `Judge` is between Scrapy's
decompression and its retries: a ban, or a failure of the proxy itself, costs the page no retry.
"""

import logging
import random
import time
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urljoin, urlsplit
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotSupported
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from trotline.bridges.scrapy.captive_proxies import CaptiveProxies
from trotline.bridges.scrapy.download_handlers import DownloadHandlers
from trotline.bridges.scrapy.held_account import LOST
from trotline.bridges.scrapy.request_codec import LOGIN
from trotline.bridges.scrapy.visits import Visit
from trotline.bridges.scrapy.way_out import failure_of, verdict_of_failure, verdict_of_response
from trotline.model.outcome import Snooze
from trotline.model.proxy import Proxy
from trotline.model.verdict import Kind, Verdict
from trotline.rules.account_sessions import leads_to_login

log = logging.getLogger("trotline.scrapy")

BEHIND_CACHE = 950
"""The place of `GoOut`: behind HttpCacheMiddleware (900)."""
BEFORE_RETRIES = 585
"""That of `Judge`: between HttpCompressionMiddleware (590) and RetryMiddleware (550)."""
_AUTHORIZATION = b"Proxy-Authorization"
_KEYS = ("proxy", "_auth_proxy", "_scheme_proxy")


class OfVisits:
    """Does nothing until the scheduler says which requests are leased."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._most = crawler.settings.getint("RETRY_TIMES")
        self.visits: Mapping[Request, Visit] = {}
        self.chance: Any = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _charged(self, visit: Visit, verdict: Verdict) -> bool:
        assert visit.way is not None  # noqa: S101 - for the type checker
        again = visit.way.charge(visit.lease, verdict, self._most, self.chance)
        if verdict.of_proxy and visit.way.proxy is not None:
            log.debug("scrapy.proxy_failed %s: %s", visit.way.proxy.public, verdict.why)
        return again


class GoOut(OfVisits):
    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._last: Proxy | None = None
        self._ours: WeakSet[Request] = WeakSet()
        """Requests with a proxy of ours."""
        self.proxied = False
        """Nothing may go out directly by mistake."""
        self._handlers = DownloadHandlers.of(crawler.settings)
        self.captive: CaptiveProxies | None = None
        """Set by the scheduler, the same one as that of `Judge`."""

    def process_request(self, request: Request, spider: Any = None) -> Request | None:
        visit = self.visits.get(request) or self._logging_in(request)
        if visit is None:
            if not request.meta.get("proxy") and (beside := self._beside(request)) is not None:
                self._set(request, beside)
        elif (way := visit.way) is not None:
            if way.account is not None and way.account.too_late(time.monotonic()):
                way.outcome = Snooze(0.0, LOST)
                return request.copy()
            if way.proxy is not None:
                self._set(request, way.proxy)
                self._last = way.proxy
            way.used = way.used or visit.request is request
        return None

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response | Request:
        self._unset(request)
        visit = self.visits.get(request)
        if visit is None or visit.way is None or not visit.way.used or not _is_redirect(response):
            return response
        # Before RedirectMiddleware: the page that it leads to is not the one that was asked for.
        captive = None if self.captive is None else self.captive.verdict(visit, request, response)
        if captive is not None and self._charged(visit, captive):
            return request.copy()
        if visit.way.account is None or not _leads_to_login(request, response):
            return response
        _end(visit, "redirected to a login page", self._most, self.chance)
        return request.copy()

    def _logging_in(self, request: Request) -> Visit | None:
        token = request.meta.get(LOGIN)
        return next((visit for visit in self.visits.values() if visit.lease.token == token), None) if token else None

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        self._unset(request)

    def _set(self, request: Request, proxy: Proxy) -> None:
        """NotSupported: it would go out directly. Nothing is set then: its handler might send the login to the site."""
        if why := self._handlers.refusal(request):
            raise NotSupported(why)
        self._clear(request)
        host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
        request.meta["proxy"] = f"{proxy.scheme.value}://{host}:{proxy.port}"
        if proxy.credentials:
            request.headers[_AUTHORIZATION] = b"Basic " + proxy.credentials.encode()
        self._ours.add(request)

    def _unset(self, request: Request) -> None:
        if request in self._ours:
            self._ours.discard(request)
            self._clear(request)

    @staticmethod
    def _clear(request: Request) -> None:
        """Also what HttpProxyMiddleware has set, for the proxies of the environment."""
        for key in _KEYS:
            request.meta.pop(key, None)
        if _AUTHORIZATION in request.headers:
            del request.headers[_AUTHORIZATION]

    def _beside(self, request: Request) -> Proxy | None:
        """For what is downloaded beside leased requests, like robots.txt and images: the proxy of a visit of the same
        host, or of any other one. None: directly, in a project that goes out so unless a request names a pool."""
        host = urlparse_cached(request).hostname
        visits = (visit for visit in self.visits.values() if visit.way is not None and visit.way.proxy is not None)
        found = {urlparse_cached(visit.request).hostname: visit.way for visit in visits}
        if (own := found.get(host)) is not None:
            return own.proxy
        if not self.proxied:
            return None
        way = next(iter(found.values()), None)
        proxy = self._last if way is None else way.proxy
        if proxy is None:
            raise IgnoreRequest("proxies are set, and no proxy was in use so far: it would go out directly")
        return proxy


class Judge(OfVisits):
    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.captive: CaptiveProxies | None = None
        self.handles: Any = None
        """Does the spider handle this status? `(response, request)`"""

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response | Request:
        visit = self.visits.get(request)
        if visit is None or visit.way is None or not visit.way.used:
            return response
        if visit.way.account is not None and (why := self._logged_out(response)):
            _end(visit, why, self._most, self.chance)
            return request.copy()
        verdict = None
        if self.captive is not None and not _is_redirect(response):
            verdict = self.captive.verdict(visit, request, response)
        verdict = verdict or self._verdict(visit, request, response)
        return request.copy() if self._charged(visit, verdict) else response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> Request | None:
        visit = self.visits.get(request)
        if visit is None or visit.way is None or not visit.way.used or visit.way.proxy is None:
            return None
        found = failure_of(exception)
        if found is None:
            return None
        return request.copy() if self._charged(visit, verdict_of_failure(visit.lease.task, *found)) else None

    def _verdict(self, visit: Visit, request: Request, response: Response) -> Verdict:
        is_ban = getattr(self._crawler.spider, "response_is_ban", None)
        if is_ban is not None and (said := is_ban(request, response)) is not None:
            return Verdict(Kind.BLOCKED, "the spider says so") if said else Verdict(Kind.OK)
        wanted = self.handles(response, request)
        return verdict_of_response(request, response, visit.lease.task, wanted=wanted, now=time.time())

    def _logged_out(self, response: Response) -> str:
        """Why the response says that the session has ended; empty: it does not."""
        says = getattr(self._crawler.spider, "trotline_logged_out", None)
        if says is None:
            return "status 401" if response.status == 401 else ""
        said = says(response)
        return said if isinstance(said, str) else "the spider says so" if said else ""


def _is_redirect(response: Response) -> bool:
    return 300 <= response.status < 400 and bool(response.headers.get("Location"))


def _leads_to_login(request: Request, response: Response) -> bool:
    location = response.headers.get("Location") or b""
    return leads_to_login(urlsplit(urljoin(request.url, location.decode("latin-1"))).path)


def _end(visit: Visit, why: str, most: int, chance: random.Random) -> None:
    """The session of its account has ended: such a page is never read."""
    assert visit.way is not None and visit.way.account is not None  # noqa: S101 - for the type checker
    log.info("account.logged-out %s: %s", visit.way.account.jar, why)
    visit.way.outcome, visit.way.member = visit.way.account.ended(why, most, chance)

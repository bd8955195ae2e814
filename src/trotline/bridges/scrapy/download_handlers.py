"""Which download handlers of a project send a request through `meta["proxy"]`: others would send it directly."""

from collections.abc import Collection, Mapping
from typing import Any, Self

from scrapy import Request
from scrapy.settings import BaseSettings
from scrapy.utils.httpobj import urlparse_cached

from trotline.model.proxy import ProxyScheme

VOUCHED = "TROTLINE_PROXY_HANDLERS"
"""The setting with handlers that the project vouches for."""
_SCRAPY = "scrapy.core.downloader.handlers."
_OWN = tuple(f"{_SCRAPY}{module}." for module in ("http", "http11", "s3"))
"""They connect to http:// proxies, or fail. That of S3 uses the one of https."""
_OWN_ALL = tuple(f"{_SCRAPY}{module}." for module in ("_httpx", "_aiohttp"))
"""Which proxies these know is tried: they fail with others."""
_LOCAL = tuple(f"{_SCRAPY}{module}." for module in ("datauri", "file"))
"""They send nothing."""
_PLAYWRIGHT = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
"""For requests without meta["playwright"] it is Scrapy's own."""
_WEB = ("http", "https")


class DownloadHandlers:
    def __init__(self, handlers: Mapping[str, Any], vouched: Collection[Any] = ()) -> None:
        """`handlers`: DOWNLOAD_HANDLERS, by the scheme of URLs."""
        self._paths = {scheme: _path(given) for scheme, given in handlers.items() if given is not None}
        self._vouched = frozenset(map(_path, vouched)) - {_PLAYWRIGHT}

    @classmethod
    def of(cls, settings: BaseSettings) -> Self:
        return cls(settings.getwithbase("DOWNLOAD_HANDLERS"), settings.getlist(VOUCHED))

    @property
    def schemes(self) -> frozenset[ProxyScheme]:
        """The proxies that pages of the web can go out through; none, if a handler does not use `meta["proxy"]`."""
        found = frozenset(ProxyScheme)
        for scheme in _WEB:
            found &= self._schemes_of(self._paths.get(scheme, ""))
        return found

    @property
    def unknown(self) -> str:
        """Why pages of the web go out through no proxy at all; empty: they do."""
        paths = (self._paths.get(scheme, "") for scheme in _WEB)
        return next((_refused(path) for path in paths if path and not self._takes_proxies(path)), "")

    def refusal(self, request: Request) -> str:
        """Why this request would go out directly, if it was sent with `meta["proxy"]`; empty: it would not."""
        path = self._paths.get(urlparse_cached(request).scheme, "")
        if path == _PLAYWRIGHT and request.meta.get("playwright"):
            return (
                "scrapy-playwright does not use the proxies of a pool, and would visit the page directly. Leave out "
                'meta["playwright"], or set meta["trotline_pool"] = "direct" and a proxy in PLAYWRIGHT_LAUNCH_OPTIONS; '
                f'or list a subclass that uses meta["proxy"] in {VOUCHED}'
            )
        # Without a handler Scrapy refuses it itself.
        return "" if not path or path.startswith(_LOCAL) or self._takes_proxies(path) else _refused(path)

    def _takes_proxies(self, path: str) -> bool:
        return bool(self._schemes_of(path))

    def _schemes_of(self, path: str) -> frozenset[ProxyScheme]:
        if not path or path in self._vouched or path.startswith(_OWN_ALL):
            return frozenset(ProxyScheme)
        if path == _PLAYWRIGHT or path.startswith(_OWN):
            return frozenset((ProxyScheme.HTTP,))
        return frozenset()


def _path(given: Any) -> str:
    return given if isinstance(given, str) else f"{given.__module__}.{given.__qualname__}"


def _refused(path: str) -> str:
    return (
        f'the download handler {path} is not known to use meta["proxy"], and would visit pages directly. If it does '
        f'use it: {VOUCHED} = ["{path}"]; without a proxy: meta["trotline_pool"] = "direct"'
    )

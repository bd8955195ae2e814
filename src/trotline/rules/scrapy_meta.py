"""Keys of `meta` that control Scrapy or one of its well-known middlewares, and not the callback.

They make Scrapy retry without end, ignore robots.txt and paces, or use a browser's context: that is for authors of
spiders, and for producers whom the operator trusts.
"""

from collections.abc import Iterable
from typing import Any

PROXY = "proxy"
OF_THE_SPIDER = frozenset((PROXY, "trotline_pool", "trotline_account", "trotline_login"))
"""Which way a request goes out, and in whose name: also a trusted producer does not choose it."""
_OF_SCRAPY = frozenset(
    (
        "_auth_proxy", "_callback", "_depth", "_dont_cache", "_scheme_proxy", "allow_offsite", "bindaddress",
        "cache_timestamp", "cached_response", "cookiejar", "depth", "depth_reset", "give_up_log_level",
        "http_auth_domain", "http_pass", "http_user", "is_secure", "is_start_request", "max_retry_times",
        "priority_adjust", "referrer_policy", "retry_times", "rule", "verbatim_url",
    )
)  # fmt: skip
_OF_OTHERS = frozenset(
    ("ban", "_ban", "proxy_retry_times", "max_proxies_to_try", "impersonate", "impersonate_args", "curl_cffi_options")
)
"""Of scrapy-rotating-proxies, scrapy-impersonate and scrapy-curl-cffi."""
_BEGINNINGS = (
    "autothrottle_", "crawl_once", "crawlera", "deltafetch_", "dont_", "download_", "ftp_", "handle_httpstatus_",
    "playwright", "pyppeteer", "redirect_", "selenium", "splash", "trotline_", "zyte_",
)  # fmt: skip
"""Of families, which grow with new versions."""


def way_out(keys: Iterable[Any]) -> str:
    """The first key that only the spider sets; empty: there is none."""
    return min(OF_THE_SPIDER.intersection(key for key in keys if isinstance(key, str)), default="")


def is_control(key: str) -> bool:
    """Names are compared as they are: Scrapy does the same."""
    return key in _OF_SCRAPY or key in _OF_OTHERS or key.startswith(_BEGINNINGS)

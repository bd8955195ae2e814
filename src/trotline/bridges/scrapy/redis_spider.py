"""Spiders of scrapy-redis, by changing their import: start URLs from a Redis list.

from trotline.bridges.scrapy import RedisSpider
"""

from collections.abc import AsyncIterator
from functools import cached_property
from typing import Any, cast
from urllib.parse import quote

from scrapy import Spider
from scrapy.settings import BaseSettings
from scrapy.spiders import CrawlSpider

from trotline.bridges.scrapy.redis_settings import redis_server
from trotline.bridges.scrapy.start_urls import request_of
from trotline.errors import SettingsError

TRUSTS_INBOX = "trotline_trusts_inbox"
"""The attribute of a spider whose inbox is read: may its producers set what controls Scrapy?"""
_MAKE = "Make requests of entries in make_request_from_data(self, data), which may return several."
_NEVER_CALLED = {
    "next_requests": _MAKE,
    "fetch_data": _MAKE,
    "pop_list_queue": _MAKE,
    "pop_priority_queue": _MAKE,
    "count_size": "The add-on looks at the list itself: remove it.",
    "schedule_next_requests": _MAKE,
    "spider_idle": "Connect a method of another name to signals.spider_idle, in from_crawler.",
    "setup_redis": "Do it in from_crawler; self.server is there when it is first used.",
}
"""Methods of scrapy-redis that the add-on does not call, and what to write instead."""
START_URLS_KEY = "%(name)s:start_urls"


class RedisMixin:
    """Its URLs are read from the list `redis_key`, by all processes; a list that is read goes on with its head, as in
    scrapy-redis."""

    name: str
    redis_key: str | None = None
    redis_batch_size: int | None = None
    """Not used: entries are read in batches of 100, and held until their requests are stored."""
    redis_encoding: str | None = None
    max_idle_time: int | None = None

    @cached_property
    def server(self) -> Any:
        """A blocking client of the server, for the spider's own use."""
        from redis import Redis

        return Redis.from_url(redis_server(cast(Spider, self).settings))

    async def start(self) -> AsyncIterator[Any]:
        """Nothing: the scheduler reads the list."""
        if not hasattr(self, TRUSTS_INBOX):
            raise SettingsError(
                "RedisSpider of Trotline is read by the Trotline add-on, which is not in this project's settings",
                hint='ADDONS = {"trotline.bridges.scrapy.Addon": 500}',
            )
        nothing: tuple[Any, ...] = ()
        for one in nothing:
            yield one

    def make_request_from_data(self, data: bytes) -> Any:
        """A request, or several. May be overridden."""
        settings: BaseSettings = getattr(self, "settings", None) or BaseSettings()
        encoding = self.redis_encoding or settings.get("REDIS_ENCODING") or "utf-8"
        return request_of(data, encoding, trusted=getattr(self, TRUSTS_INBOX, False))


class RedisSpider(RedisMixin, Spider):
    pass


class RedisCrawlSpider(RedisMixin, CrawlSpider):
    pass


def inbox_of(spider: Spider, settings: BaseSettings) -> str:
    """The URL of the spider's inbox; empty: it has none. SettingsError says what is wrong."""
    given = settings.get("TROTLINE_INBOX") or ""
    if isinstance(spider, RedisMixin):
        _refuse_overrides(spider)
    if given or not isinstance(spider, RedisMixin):
        return str(given)
    for name in ("REDIS_START_URLS_AS_SET", "REDIS_START_URLS_AS_ZSET"):
        if settings.getbool(name):
            raise SettingsError(
                f"the project sets {name}; the Trotline add-on reads start URLs from a list",
                hint=f"Remove {name}, and let producers use LPUSH or RPUSH.",
            )
    server = redis_server(settings)
    if not server:
        raise SettingsError(
            f"the start URLs of {spider.name!r} are in Redis, and no setting names the server",
            hint='REDIS_URL = "redis://localhost:6379/0"',
        )
    key = (spider.redis_key or settings.get("REDIS_START_URLS_KEY") or START_URLS_KEY) % {"name": spider.name}
    idle = spider.max_idle_time or settings.getint("MAX_IDLE_TIME_BEFORE_CLOSE")
    return f"{server}?inbox={quote(key, safe='')}&end=left" + (f"&idle={int(idle)}s" if idle else "")


def _refuse_overrides(spider: RedisMixin) -> None:
    for kind in type(spider).__mro__:
        for name, remedy in _NEVER_CALLED.items():
            if name in vars(kind):
                raise SettingsError(
                    f"{kind.__name__}.{name} is a method of scrapy-redis, which the Trotline add-on never calls",
                    hint=remedy,
                )

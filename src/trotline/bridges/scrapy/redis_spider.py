"""Spiders of scrapy-redis, by changing their import: start URLs from a Redis list.

from trotline.bridges.scrapy import RedisSpider
"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from scrapy import Spider
from scrapy.settings import BaseSettings
from scrapy.spiders import CrawlSpider

from trotline.bridges.scrapy.start_urls import request_of
from trotline.errors import SettingsError

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

    async def start(self) -> AsyncIterator[Any]:
        """Nothing: the scheduler reads the list."""
        if not getattr(self, "trotline_reads_inbox", False):
            raise SettingsError(
                "RedisSpider of Trotline is read by the Trotline add-on, which is not in this project's settings",
                hint='ADDONS = {"trotline.bridges.scrapy.Addon": 500}',
            )
        nothing: tuple[Any, ...] = ()
        for one in nothing:
            yield one

    def make_request_from_data(self, data: bytes) -> Any:
        """A request, or several. May be overridden."""
        return request_of(data, self.redis_encoding or "utf-8")


class RedisSpider(RedisMixin, Spider):
    pass


class RedisCrawlSpider(RedisMixin, CrawlSpider):
    pass


def redis_server(settings: BaseSettings) -> str:
    """Where the keys of scrapy-redis are; empty: no setting says it."""
    server = str(settings.get("REDIS_URL") or settings.get("TROTLINE") or "")
    return server.partition("?")[0] if server.startswith(("redis://", "rediss://")) else ""


def inbox_of(spider: Spider, settings: BaseSettings) -> str:
    """The URL of the spider's inbox; empty: it has none. SettingsError says what is wrong."""
    given = settings.get("TROTLINE_INBOX") or ""
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

"""What the bridge reads from the settings of a Scrapy project."""

import math
import os
from collections.abc import Mapping
from typing import Any, Self

import msgspec
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from trotline.bridges.scrapy.redis_settings import redis_server
from trotline.bridges.scrapy.redis_spider import inbox_of
from trotline.commands.queue_job import JobPlan
from trotline.config import backends
from trotline.config.backend_urls import frontier_url, inbox_url
from trotline.config.setting_types import places
from trotline.config.settings import PROXY_LIST
from trotline.errors import SettingsError, SpiderRefused
from trotline.model.job import LaneRules
from trotline.model.pace import FASTEST, SLOWEST, Pace, Rate
from trotline.model.queue_job import SCRAPY
from trotline.rules.scrapy_job_owner import SpiderNote, digests, job_name
from trotline.spider.spider_checks import name as checked_name

SETTINGS = (
    "TROTLINE", "TROTLINE_JOB", "TROTLINE_ONCE", "TROTLINE_STAY", "TROTLINE_INBOX", "TROTLINE_SINK", "TROTLINE_KEYS",
    "TROTLINE_PROXIES", "TROTLINE_POOL", "TROTLINE_PROXY_HANDLERS", "TROTLINE_ALLOW",
)  # fmt: skip
"""Those of a project."""
OF_THE_ADDON = ("TROTLINE_ADAPTIVE", "TROTLINE_UNFILTERED")
"""The add-on sets them itself, for the scheduler."""
UNFILTERED = "scrapy.dupefilters.BaseDupeFilter"
"""The class of a project that filters no duplicates."""


class Options(msgspec.Struct, frozen=True):
    plan: JobPlan
    spider: SpiderNote
    slots: Mapping[str, Any]
    """DOWNLOAD_SLOTS: those that have a pace of their own."""
    stay: bool
    """The process does not end with the job."""
    once: bool
    """If the last job of this name has ended, no other is begun."""
    unfiltered: bool
    adaptive: bool
    """AutoThrottle was on: the frontier slows down when latency rises."""
    inbox: str
    """Where other programs leave start URLs; empty: there is none."""
    redis: str
    """The server of scrapy-redis, for jobs that were imported; empty: none is named."""
    proxies: str
    """The file with pools of proxies; empty: there is none."""
    pool: str
    """The pool of requests that name none."""
    allow: tuple[str, ...]
    """Private hosts and networks that lists of proxies may be read from."""
    allowed_codes: frozenset[int] | None
    """HTTPERROR_ALLOWED_CODES; None: all."""

    @classmethod
    def read(cls, crawler: Crawler) -> Self:
        """SettingsError says what is wrong."""
        settings = crawler.settings
        return cls(
            JobPlan(_job_name(crawler), _frontier(settings), paces(settings)),
            _spider(crawler),
            settings.getdict("DOWNLOAD_SLOTS"),
            settings.getbool("TROTLINE_STAY"),
            settings.getbool("TROTLINE_ONCE"),
            settings.getbool("TROTLINE_UNFILTERED"),
            settings.getbool("TROTLINE_ADAPTIVE"),
            _inbox(crawler),
            redis_server(settings),
            proxies_file(settings),
            str(settings.get("TROTLINE_POOL") or ""),
            _allow(settings),
            None if settings.getbool("HTTPERROR_ALLOW_ALL") else _codes(settings),
        )


def proxies_file(settings: BaseSettings) -> str:
    """Of the project, or of the environment, as for workers of ours."""
    given = settings.get("TROTLINE_PROXIES") or os.environ.get("TROTLINE_PROXIES") or os.environ.get(PROXY_LIST) or ""
    return str(given).strip()


def _allow(settings: BaseSettings) -> tuple[str, ...]:
    """Of the project, or of the environment, as for workers of ours."""
    given = settings.get("TROTLINE_ALLOW") or os.environ.get("TROTLINE_ALLOW") or ()
    try:
        return places(given)
    except ValueError as error:
        raise SettingsError(
            f"the setting TROTLINE_ALLOW: {error}", hint='For example: TROTLINE_ALLOW = ["10.20.0.0/16"]'
        ) from error


def _inbox(crawler: Crawler) -> str:
    found = inbox_of(crawler.spider, crawler.settings) if crawler.spider is not None else ""
    try:
        return inbox_url(found) if found else ""
    except ValueError as error:
        raise SettingsError(f"the inbox of the spider: {error}") from error


def _codes(settings: BaseSettings) -> frozenset[int]:
    return frozenset(int(code) for code in settings.getlist("HTTPERROR_ALLOWED_CODES"))


def _job_name(crawler: Crawler) -> str:
    """That of the spider, in our letters; or TROTLINE_JOB, in which %(attribute)s stands for one of the spider."""
    assert crawler.spider is not None  # noqa: S101 - Scrapy makes it before the settings are read
    given = crawler.settings.get("TROTLINE_JOB")
    if not given:
        return job_name(crawler.spider.name)
    try:
        attributes = {**vars(type(crawler.spider)), **vars(crawler.spider), "name": crawler.spider.name}
        return checked_name(str(given) % attributes)
    except SpiderRefused as error:
        raise SettingsError(f"TROTLINE_JOB: {error.what}", hint=error.hint) from error
    except (KeyError, ValueError, TypeError) as error:
        raise SettingsError(
            f"TROTLINE_JOB is {given!r}, and the spider has no attribute {error}",
            hint='Use attributes of the spider: "%(name)s-%(category)s"',
        ) from error


def _spider(crawler: Crawler) -> SpiderNote:
    """Scrapy keeps the arguments (`-a`) as attributes of the spider only. They are text, as others may be."""
    spider = crawler.spider
    assert spider is not None  # noqa: S101
    texts = {name: one for name, one in vars(spider).items() if type(one) is str and name != "name"}
    return SpiderNote(spider.name, digests(texts))


def _frontier(settings: BaseSettings) -> str:
    given = settings.get("TROTLINE")
    if not isinstance(given, str) or not given:
        raise SettingsError(
            "the setting TROTLINE does not name a frontier",
            hint=f'For example TROTLINE = "redis://localhost:6379/0". It is written as {backends.frontier_forms()}',
        )
    try:
        url = frontier_url(given)
    except ValueError as error:
        raise SettingsError(f"the setting TROTLINE: {error}") from error
    if backends.in_memory(url):
        raise SettingsError(
            "the setting TROTLINE names a frontier in memory, which no other process could see",
            hint='Name a file or a server: TROTLINE = "sqlite:PATH" or "redis://HOST:PORT/0"',
        )
    return url


def paces(settings: BaseSettings) -> LaneRules:
    """Scrapy's limits per process become paces of the whole fleet."""
    delay = settings.getfloat("DOWNLOAD_DELAY")
    most = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
    if settings.getbool("TROTLINE_ADAPTIVE"):
        _refuse_no_delay(delay)
        most = min(most, math.ceil(settings.getfloat("AUTOTHROTTLE_TARGET_CONCURRENCY")))
    slowest = _rate(settings.getfloat("AUTOTHROTTLE_MAX_DELAY"), 1 / 60)
    lanes = {
        slot: Pace(
            _rate(float(given.get("delay", delay)), FASTEST), max(1, int(given.get("concurrency", most))), slowest
        )
        for slot, given in settings.getdict("DOWNLOAD_SLOTS").items()
    }
    return LaneRules(default=Pace(_rate(delay, FASTEST), max(1, most), slowest), lanes=lanes, source=SCRAPY)


def _refuse_no_delay(delay: float) -> None:
    """AutoThrottle finds its delay itself, from AUTOTHROTTLE_START_DELAY on. The frontier slows down from a pace."""
    if delay <= 0:
        raise SettingsError(
            "the project sets AUTOTHROTTLE_ENABLED without DOWNLOAD_DELAY; the Trotline add-on slows a host down from "
            "the pace of DOWNLOAD_DELAY, and without one nothing would protect the site",
            hint="Set DOWNLOAD_DELAY to the shortest delay that the site may see from all processes together: 0.5 is "
            "2 pages a second. Or remove AUTOTHROTTLE_ENABLED.",
        )


def _rate(delay: float, without: float) -> Rate:
    return Rate(min(max(1 / delay, SLOWEST), FASTEST) if delay > 0 else without)

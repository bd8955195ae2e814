"""The add-on: one line in the settings of a Scrapy project, and its spiders run on a frontier of ours.

ADDONS = {"trotline.bridges.scrapy.Addon": 500}
TROTLINE = "redis://localhost:6379/0"
"""

import inspect
import logging
from collections.abc import AsyncIterator
from types import MethodType
from typing import Any, Self

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from trotline.bridges.scrapy.log_in import BEFORE_ROBOTS, LogIn
from trotline.bridges.scrapy.options import OF_THE_ADDON, SETTINGS, UNFILTERED, Options, proxies_file
from trotline.bridges.scrapy.pool_middlewares import BEFORE_RETRIES, BEHIND_CACHE, GoOut, Judge
from trotline.bridges.scrapy.scheduler import Scheduler
from trotline.config.settings import NAMES, PREFIX
from trotline.errors import SettingsError
from trotline.model.proxy_pool import NO_PROXY
from trotline.rules.name_suggestions import instead

log = logging.getLogger("trotline.scrapy")

_SCHEDULER = f"{Scheduler.__module__}.{Scheduler.__qualname__}"
_NO_EFFECT = (
    "AUTOTHROTTLE_DEBUG", "AUTOTHROTTLE_START_DELAY", "DUPEFILTER_DEBUG", "REDIS_START_URLS_BATCH_SIZE",
    "SCHEDULER_DEBUG", "SCHEDULER_DISK_QUEUE", "SCHEDULER_DUPEFILTER_CLASS", "SCHEDULER_DUPEFILTER_KEY",
    "SCHEDULER_FLUSH_ON_START", "SCHEDULER_IDLE_BEFORE_CLOSE", "SCHEDULER_MEMORY_QUEUE", "SCHEDULER_PERSIST",
    "SCHEDULER_PRIORITY_QUEUE", "SCHEDULER_QUEUE_CLASS", "SCHEDULER_QUEUE_KEY", "SCHEDULER_SERIALIZER",
    "SCHEDULER_START_DISK_QUEUE", "SCHEDULER_START_MEMORY_QUEUE",
)  # fmt: skip
"""Of schedulers that the add-on replaces."""
_DUPEFILTERS = ("scrapy.dupefilters.RFPDupeFilter", UNFILTERED)


class Addon:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """SettingsError: a setting contradicts the add-on, or it has none of this name."""
        _refuse_unknown(settings)
        if _only_looks(self._crawler.spider):
            _refuse_to_go_directly(settings)
            return
        _refuse_others(settings)
        _name_ignored(settings)
        filters = _path(settings["DUPEFILTER_CLASS"])
        _set(settings, "SCHEDULER", _SCHEDULER)
        _set(settings, "TROTLINE_UNFILTERED", filters == UNFILTERED)
        _set(settings, "DUPEFILTER_CLASS", UNFILTERED)
        # The frontier adapts the pace of a host for all processes.
        _set(settings, "TROTLINE_ADAPTIVE", settings.getbool("AUTOTHROTTLE_ENABLED"))
        _set(settings, "AUTOTHROTTLE_ENABLED", False)
        if proxies_file(settings):
            for kind, place in ((GoOut, BEHIND_CACHE), (Judge, BEFORE_RETRIES), (LogIn, BEFORE_ROBOTS)):
                settings["DOWNLOADER_MIDDLEWARES"][f"{kind.__module__}.{kind.__qualname__}"] = place
        spider = self._crawler.spider
        if spider is not None:
            _take_attributes(spider, settings)
            _take_start_requests(spider)
        Options.read(self._crawler)


def _only_looks(spider: Spider | None) -> bool:
    """`scrapy shell` (which makes its spider later), `parse`, `fetch` and `check` (which bring a start of their own).

    In a job they would take pages of a crawl that is under way, and store nothing of them."""
    return spider is None or str(getattr(spider.start, "__module__", "")).startswith("scrapy.commands.")


def _refuse_to_go_directly(settings: BaseSettings) -> None:
    if proxies_file(settings) and settings.get("TROTLINE_POOL") != NO_PROXY:
        raise SettingsError(
            "the project has pools of proxies, and this command of Scrapy would visit the site directly",
            hint="Allow it with -s TROTLINE_POOL=direct, or look with: trotline shell URL --proxies FILE",
        )


def _refuse_unknown(settings: BaseSettings) -> None:
    """A mistyped setting would have no effect: TROTLINE_ONEC would begin a job that TROTLINE_ONCE does not."""
    unknown = sorted(name for name in map(str, settings) if name.startswith("TROTLINE") and name not in SETTINGS)
    for name in unknown:
        if name in OF_THE_ADDON and settings.getpriority(name) == SETTINGS_PRIORITIES["addon"]:
            continue
        raise SettingsError(f"{name[:80]} is not a setting of the Trotline add-on", hint=_known(name))


def _known(name: str) -> str:
    if name.removeprefix(PREFIX).lower() not in NAMES:
        return instead(name, SETTINGS, "settings")
    return (
        f"The variable {name} of the environment is for Trotline's own commands. The settings of a Scrapy project are: "
        f"{SETTINGS[0]} (the frontier), {', '.join(SETTINGS[1:])}."
    )


def _refuse_others(settings: BaseSettings) -> None:
    scheduler = _path(settings["SCHEDULER"])
    if scheduler != _SCHEDULER and (settings.getpriority("SCHEDULER") or 0) >= SETTINGS_PRIORITIES["project"]:
        raise SettingsError(
            f"the project sets SCHEDULER = {scheduler!r}, and the Trotline add-on is a scheduler itself",
            hint="Remove SCHEDULER from the settings, or the add-on from ADDONS.",
        )
    dupefilter = _path(settings["DUPEFILTER_CLASS"])
    if dupefilter not in _DUPEFILTERS:
        raise SettingsError(
            f"the project sets DUPEFILTER_CLASS = {dupefilter!r}, which the Trotline add-on would not use: "
            "the frontier filters duplicates",
            hint="Remove DUPEFILTER_CLASS. What makes two requests equal is REQUEST_FINGERPRINTER_CLASS.",
        )
    if settings.get("JOBDIR"):
        raise SettingsError(
            "the project sets JOBDIR, which the Trotline add-on does not use: the job is kept in the frontier",
            hint="Remove JOBDIR. A crawl that was stopped goes on with the next: scrapy crawl NAME",
        )
    if settings["CONCURRENT_REQUESTS_PER_IP"]:
        raise SettingsError(
            "the project sets CONCURRENT_REQUESTS_PER_IP; the Trotline add-on has paces by host, and not by address",
            hint="Use CONCURRENT_REQUESTS_PER_DOMAIN, or DOWNLOAD_SLOTS.",
        )


def _name_ignored(settings: BaseSettings) -> None:
    ignored = [name for name in _NO_EFFECT if (settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES["project"]]
    if ignored:
        log.warning("scrapy.ignored_settings no effect with the Trotline add-on: %s", ", ".join(ignored))


def _path(given: Any) -> str:
    return given if isinstance(given, str) else f"{given.__module__}.{given.__qualname__}"


def _set(settings: BaseSettings, name: str, value: Any) -> None:
    """Whatever the priority of the project's own value is."""
    priority = max(settings.getpriority(name) or 0, SETTINGS_PRIORITIES["addon"])
    settings.set(name, value, priority=priority)


def _take_attributes(spider: Spider, settings: BaseSettings) -> None:
    """Old names of two settings, as attributes of the spider."""
    for attribute, setting in (
        ("download_delay", "DOWNLOAD_DELAY"),
        ("max_concurrent_requests", "CONCURRENT_REQUESTS_PER_DOMAIN"),
    ):
        if hasattr(spider, attribute):
            _set(settings, setting, getattr(spider, attribute))


def _take_start_requests(spider: Spider) -> None:
    """Scrapy 2.16 calls `start_requests` no more. A spider that has only that one still means it."""
    if (
        not hasattr(Spider, "start_requests")
        and _overrides(spider, "start_requests")
        and not _overrides(spider, "start")
    ):
        spider.start = MethodType(_start, spider)  # type: ignore[method-assign]


def _overrides(spider: Spider, name: str) -> bool:
    """In a class that is not Scrapy's."""
    return any(name in vars(kind) for kind in type(spider).__mro__ if not kind.__module__.startswith("scrapy."))


async def _start(spider: Any) -> AsyncIterator[Any]:
    found = spider.start_requests()
    if inspect.isasyncgen(found):
        async for one in found:
            yield one
        return
    for one in found:
        yield one

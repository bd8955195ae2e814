"""The add-on reads a project's settings, and refuses those that it would contradict."""

import ast
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from trotline.bridges import scrapy as bridge
from trotline.bridges.scrapy import Addon, Scheduler
from trotline.bridges.scrapy.options import OF_THE_ADDON, SETTINGS, Options
from trotline.errors import SettingsError
from trotline.model.pace import Pace, Rate

PLACE = "sqlite:frontier.db"
LISTS = ("SETTINGS", "OF_THE_ADDON")


def project(spider: type[Spider] = Spider, name: str = "shop", **given: Any) -> Crawler:
    """A crawler at the moment when Scrapy loads its add-ons."""
    settings = Settings()
    settings.setdict({"TROTLINE": PLACE, **given}, priority="project")
    crawler = Crawler(spider, settings)
    crawler.spider = spider(name)
    Addon.from_crawler(crawler).update_settings(crawler.settings)
    return crawler


def options(spider: type[Spider] = Spider, name: str = "shop", **given: Any) -> Options:
    return Options.read(project(spider, name, **given))


def test_one_line_makes_ours_the_scheduler() -> None:
    settings = project().settings
    assert settings["SCHEDULER"] == f"{Scheduler.__module__}.Scheduler"
    assert not settings.getbool("AUTOTHROTTLE_ENABLED")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"SCHEDULER": "scrapy_redis.scheduler.Scheduler"}, "SCHEDULER = 'scrapy_redis.scheduler.Scheduler'"),
        ({"DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter"}, "DUPEFILTER_CLASS"),
        ({"JOBDIR": "crawls/shop"}, "JOBDIR"),
        ({"CONCURRENT_REQUESTS_PER_IP": 2}, "CONCURRENT_REQUESTS_PER_IP"),
        ({"TROTLINE": None}, "does not name a frontier"),
        ({"TROTLINE": "gopher://x"}, "TROTLINE"),
        ({"TROTLINE": "sqlite::memory:"}, "in memory"),
        ({"TROTLINE_JOB": "%(nothing)s"}, "no attribute 'nothing'"),
        ({"TROTLINE_JOB": "a b"}, "cannot be a spider's name"),
        ({"TROTLINE_ONEC": True}, "TROTLINE_ONEC is not a setting"),
        ({"TROTLINE_ADAPTIVE": True}, "TROTLINE_ADAPTIVE is not a setting"),
    ],
)
def test_settings_that_contradict_the_add_on_are_refused_with_a_hint(given: dict[str, Any], what: str) -> None:
    with pytest.raises(SettingsError) as error:
        project(**given)
    assert what in error.value.what
    assert error.value.hint or "TROTLINE" in given


def test_settings_without_effect_are_named_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    project()
    assert not caplog.records
    project(
        SCHEDULER_PRIORITY_QUEUE="scrapy.pqueues.ScrapyPriorityQueue",
        SCHEDULER_IDLE_BEFORE_CLOSE=10,
        SCHEDULER_FLUSH_ON_START=False,
        DUPEFILTER_DEBUG=True,
    )
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.endswith(
        "no effect with the Trotline add-on: DUPEFILTER_DEBUG, SCHEDULER_FLUSH_ON_START, SCHEDULER_IDLE_BEFORE_CLOSE, "
        "SCHEDULER_PRIORITY_QUEUE"
    )


def test_a_mistyped_setting_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(SettingsError) as error:
        project(TROTLINE_ONEC=True)
    assert error.value.hint.startswith("Did you mean 'TROTLINE_ONCE'? The settings there are: TROTLINE, TROTLINE_JOB")


def test_a_variable_of_the_environment_is_not_a_setting_of_a_project() -> None:
    with pytest.raises(SettingsError) as error:
        project(TROTLINE_FRONTIER="sqlite:other.db")
    assert "of the environment" in error.value.hint
    assert "TROTLINE (the frontier)" in error.value.hint


@pytest.mark.parametrize("priority", ["spider", "cmdline"])
def test_settings_of_a_spider_and_of_the_command_line_are_checked_too(priority: str) -> None:
    class Mistyped(Spider):
        custom_settings = {"TROTLINE_POLL": "residential"} if priority == "spider" else None

    crawler = Crawler(Mistyped, Settings({"TROTLINE": PLACE}))
    if priority == "cmdline":
        crawler.settings.set("TROTLINE_POLL", "residential", priority="cmdline")
    crawler.spider = Mistyped("shop")
    with pytest.raises(SettingsError, match="TROTLINE_POLL") as error:
        Addon.from_crawler(crawler).update_settings(crawler.settings)
    assert "Did you mean 'TROTLINE_POOL'?" in error.value.hint


def test_the_known_settings_are_those_that_the_code_reads() -> None:
    """`-s`, settings.py and spiders may set them; another name is refused."""
    read = set()
    for file in Path(bridge.__file__).parent.glob("*.py"):
        for statement in ast.parse(file.read_text()).body:
            lists_them = isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") in LISTS
            for node in () if lists_them else ast.walk(statement):
                if isinstance(node, ast.Constant) and re.fullmatch(r"TROTLINE(_[A-Z_]+)?", str(node.value)):
                    read.add(node.value)
    assert read == {*SETTINGS, *OF_THE_ADDON}


def test_limits_of_a_process_become_paces_of_the_fleet() -> None:
    rules = options(
        DOWNLOAD_DELAY=0.5,
        CONCURRENT_REQUESTS_PER_DOMAIN=3,
        DOWNLOAD_SLOTS={"slow.example": {"delay": 4, "concurrency": 1}},
    ).plan.rules
    assert (rules.default.rate, rules.default.concurrency) == (Rate(2.0), 3)
    assert (rules.pace("slow.example").rate, rules.pace("slow.example").concurrency) == (Rate(0.25), 1)
    assert isinstance(rules.pace("other.example"), Pace)


def test_without_a_delay_only_the_number_of_visits_at_a_time_is_limited() -> None:
    pace = options().plan.rules.default
    assert pace.rate.per_second >= 10_000
    assert pace.concurrency == 8


def test_old_attributes_of_a_spider_count_as_settings() -> None:
    class Slow(Spider):
        download_delay = 2

    assert options(Slow).plan.rules.default.rate == Rate(0.5)


def test_the_job_has_the_name_of_the_spider_in_letters_that_every_frontier_takes() -> None:
    assert options(name="shop.example v2").plan.name.startswith("shop-example-v2-")
    assert options(name="shop.example v2").spider.name == "shop.example v2"
    assert options(TROTLINE_JOB="%(name)s-daily").plan.name == "shop-daily"


def test_autothrottle_makes_the_frontier_adapt_to_latency() -> None:
    assert options(AUTOTHROTTLE_ENABLED=True, DOWNLOAD_DELAY=0.5).adaptive
    assert not options().adaptive


def test_autothrottle_limits_the_visits_at_a_time() -> None:
    """8 at a time, as without it, were 14 times as many requests as plain Scrapy sent."""

    def places(**given: Any) -> int:
        return options(AUTOTHROTTLE_ENABLED=True, DOWNLOAD_DELAY=0.5, **given).plan.rules.default.concurrency

    assert places() == 1
    assert places(AUTOTHROTTLE_TARGET_CONCURRENCY=2.5) == 3
    assert places(AUTOTHROTTLE_TARGET_CONCURRENCY=0.5) == 1
    assert places(AUTOTHROTTLE_TARGET_CONCURRENCY=20) == 8


def test_autothrottle_without_a_delay_of_the_spider_or_the_project_is_refused() -> None:
    class Slow(Spider):
        download_delay = 2

    with pytest.raises(SettingsError, match="without DOWNLOAD_DELAY") as error:
        project(AUTOTHROTTLE_ENABLED=True)
    assert "DOWNLOAD_DELAY" in error.value.hint
    assert options(Slow, AUTOTHROTTLE_ENABLED=True).plan.rules.default.rate == Rate(0.5)


def test_a_project_without_a_duplicate_filter_stays_without_one() -> None:
    assert options(DUPEFILTER_CLASS="scrapy.dupefilters.BaseDupeFilter").unfiltered
    assert not options().unfiltered


async def test_start_requests_are_called_by_versions_that_do_not_know_them() -> None:
    class Old(Spider):
        name = "old"

        def start_requests(self) -> Any:
            yield Request("https://shop.example/1")

    class New(Old):
        async def start(self) -> Any:
            yield Request("https://shop.example/2")

    for kind, path in ((Old, "1"), (New, "2")):
        spider = project(kind, "old").spider
        assert spider is not None
        assert [request.url[-1] async for request in spider.start()] == [path]


def commanded(**given: Any) -> Crawler:
    """As `scrapy parse`, `fetch` and `check` make it: a spider whose start is that of the command."""

    async def start(self: Spider) -> AsyncIterator[Any]:
        yield Request("https://shop.example/")

    start.__module__ = "scrapy.commands.parse"
    return project(type("Looked", (Spider,), {"start": start}), **given)


def test_commands_that_look_at_one_page_take_no_part_in_the_job() -> None:
    """They would take the pages of a crawl that is under way, and store nothing of them."""
    assert commanded().settings["SCHEDULER"] == "scrapy.core.scheduler.Scheduler"


def test_the_shell_has_no_spider_yet() -> None:
    settings = Settings()
    settings.setdict({"TROTLINE": PLACE}, priority="project")
    crawler = Crawler(Spider, settings)
    Addon.from_crawler(crawler).update_settings(crawler.settings)
    assert crawler.settings["SCHEDULER"] == "scrapy.core.scheduler.Scheduler"


def test_they_do_not_visit_a_site_without_its_proxies_by_mistake() -> None:
    with pytest.raises(SettingsError, match="directly") as error:
        commanded(TROTLINE_PROXIES="proxies.toml")
    assert "TROTLINE_POOL=direct" in error.value.hint
    assert commanded(TROTLINE_PROXIES="proxies.toml", TROTLINE_POOL="direct").settings["SCHEDULER"]


def test_private_hosts_of_proxy_lists_are_those_of_the_project_or_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert options().allow == ()
    monkeypatch.setenv("TROTLINE_ALLOW", "10.0.0.1, lists.corp.example")
    assert options().allow == ("10.0.0.1", "lists.corp.example")
    assert options(TROTLINE_ALLOW=["10.20.0.0/16"]).allow == ("10.20.0.0/16",)
    with pytest.raises(SettingsError, match="the setting TROTLINE_ALLOW"):
        options(TROTLINE_ALLOW=["10.20.0.0/99"])

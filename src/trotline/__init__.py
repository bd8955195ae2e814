"""Distributed web scraping: the same spider on a laptop with no services and on a fleet.

from trotline import Page, Spider

quotes = Spider("quotes", pace="1/s")

@quotes.page(seeds=["https://quotes.example/"])
def listing(page: Page):
    for box in page.css(".quote"):
        yield {"text": box.css(".text::text").get(), "by": box.css(".author::text").get()}
    yield page.follow("li.next a")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trotline.commands.app import App
    from trotline.commands.queue import Queue
    from trotline.commands.queue_task import QueueTask
    from trotline.commands.run_script import RunReport, run
    from trotline.commands.sync_queue import SyncQueue
    from trotline.errors import LeaseLost, TrotlineError
    from trotline.model.harvest import Follow, Harvest
    from trotline.model.limits import Limits
    from trotline.model.pace import Pace, Rate
    from trotline.model.record import Record
    from trotline.model.secret import Secret
    from trotline.model.stored_file import Files
    from trotline.model.task import LATER, NORMAL, SOON, Task
    from trotline.rules.traps import TrapRules
    from trotline.rules.urls import UrlRules
    from trotline.spider.css_selection import Selected, Selection
    from trotline.spider.handler_failed import HandlerFailed
    from trotline.spider.hooks import Drop, WorkerHandle
    from trotline.spider.login_session import LoginSession
    from trotline.spider.page import BadJson, Page
    from trotline.spider.request import Request
    from trotline.spider.retry_page import Retry
    from trotline.spider.route import Route
    from trotline.spider.seeds import FileSeeds, RobotsSitemaps, Sitemap
    from trotline.spider.spider import Spider
    from trotline.spider.xpath_selection import XPathSelected, XPathSelection

_HOMES = {
    "App": "commands.app",
    "BadJson": "spider.page",
    "Drop": "spider.hooks",
    "FileSeeds": "spider.seeds",
    "Files": "model.stored_file",
    "Follow": "model.harvest",
    "HandlerFailed": "spider.handler_failed",
    "Harvest": "model.harvest",
    "LATER": "model.task",
    "LeaseLost": "errors",
    "Limits": "model.limits",
    "LoginSession": "spider.login_session",
    "NORMAL": "model.task",
    "Pace": "model.pace",
    "Page": "spider.page",
    "Queue": "commands.queue",
    "QueueTask": "commands.queue_task",
    "Rate": "model.pace",
    "Record": "model.record",
    "Request": "spider.request",
    "Retry": "spider.retry_page",
    "RobotsSitemaps": "spider.seeds",
    "Route": "spider.route",
    "RunReport": "commands.run_script",
    "SOON": "model.task",
    "Secret": "model.secret",
    "Selected": "spider.css_selection",
    "Selection": "spider.css_selection",
    "Sitemap": "spider.seeds",
    "Spider": "spider.spider",
    "SyncQueue": "commands.sync_queue",
    "Task": "model.task",
    "TrapRules": "rules.traps",
    "TrotlineError": "errors",
    "UrlRules": "rules.urls",
    "WorkerHandle": "spider.hooks",
    "XPathSelected": "spider.xpath_selection",
    "XPathSelection": "spider.xpath_selection",
    "run": "commands.run_script",
}
"""Where each public name lives. They are imported when first used: `trotline --help` must not pay for a parser."""

__all__ = [
    "LATER",
    "NORMAL",
    "SOON",
    "App",
    "BadJson",
    "Drop",
    "FileSeeds",
    "Files",
    "Follow",
    "HandlerFailed",
    "Harvest",
    "LeaseLost",
    "Limits",
    "LoginSession",
    "Pace",
    "Page",
    "Queue",
    "QueueTask",
    "Rate",
    "Record",
    "Request",
    "Retry",
    "RobotsSitemaps",
    "Route",
    "RunReport",
    "Secret",
    "Selected",
    "Selection",
    "Sitemap",
    "Spider",
    "SyncQueue",
    "Task",
    "TrapRules",
    "TrotlineError",
    "UrlRules",
    "WorkerHandle",
    "XPathSelected",
    "XPathSelection",
    "__version__",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("trotline")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"trotline.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

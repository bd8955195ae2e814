"""A whole crawl in one process: pages from a function, through the real parser, watch and gate, with default rules."""

from collections import deque
from collections.abc import Callable

import msgspec

from trotline.frontier.gate import Gate
from trotline.model.answer import Answer
from trotline.model.harvest import Follow
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.time import from_iso
from trotline.rules.scope import Scope
from trotline.rules.traps import TrapDetector, TrapRules
from trotline.rules.urls import UrlRules
from trotline.spider.page import Page, pictures, visible_text

HOST = "http://site.example"
NOW = from_iso("2026-03-01T00:00:00Z")
WORDS = [
    "amber",
    "basin",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "haven",
    "inlet",
    "joker",
    "knoll",
    "lemon",
    "maple",
    "north",
    "ocean",
    "pearl",
    "quill",
    "river",
    "slate",
    "tulip",
    "umbra",
    "vigor",
    "willow",
    "xenon",
    "yacht",
    "zephyr",
]

Site = Callable[[str], str | None]
"""From what follows the host to the HTML of the page; None: 404."""


class Crawled(msgspec.Struct):
    pages: list[str] = []
    """Without the host, in the order of their visits."""
    refused: dict[str, int] = {}
    ended: bool = True


def crawl(site: Site, start: str = "/", *, most: int = 30_000, rules: TrapRules | None = None) -> Crawled:
    """Visit what the gate admits, breadth first, until nothing is left or `most` pages were visited."""
    gate = Gate(Scope(hosts=["site.example"]), UrlRules(), TrapDetector(rules), site="s", retries=0, limits=Limits())
    waiting = deque(gate.seeds([Task(url=HOST + start, route="page")], NOW).tasks)
    gate.confirm(waiting)
    crawled = Crawled()
    while waiting:
        task = waiting.popleft()
        html = site(task.url.removeprefix(HOST))
        if html is None:
            continue
        if len(crawled.pages) == most:
            crawled.ended = False
            break
        crawled.pages.append(task.url.removeprefix(HOST))
        for new in _visit(gate, task, html, crawled):
            waiting.append(new)
    return crawled


def _visit(gate: Gate, task: Task, html: str, crawled: Crawled) -> list[Task]:
    answer = Answer(
        url=task.url, status=200, headers=(("content-type", "text/html; charset=utf-8"),), body=html.encode()
    )
    page = Page(task, answer)
    follows = [Follow(route="page", urls=page.links())]
    likeness = gate.find_near_duplicate(task.lane, page.url, lambda: visible_text(page), lambda: pictures(page))
    if likeness is None:
        result = gate.filter([], follows, task, page.url, NOW)
    else:
        result = gate.filter_alike(likeness, [], follows, task, page.url, NOW)
    gate.confirm(result.tasks)
    for why, count in result.refused.items():
        crawled.refused[why] = crawled.refused.get(why, 0) + count
    return result.tasks


def html(text: str, *links: str, more: str = "") -> str:
    """A page in a template, as sites have one: enough of it is the same on all pages."""
    anchors = "".join(f'<li><a href="{link}">more</a>' for link in links)
    return (
        "<html><body><nav>Home, About us, Contact, Terms and conditions, Imprint. Call (404) 555-0100.</nav>"
        f"<main>{text}{more}</main><ul>{anchors}</ul><footer>All rights reserved by the owners of this site, 2026."
        "</footer></body></html>"
    )


def words(number: int, count: int = 6) -> str:
    """Different words for different numbers."""
    found = []
    for _ in range(count):
        number, place = divmod(number * 7 + 3, len(WORDS))
        found.append(WORDS[place])
    return " ".join(found)

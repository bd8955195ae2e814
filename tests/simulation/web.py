"""A small web with a temper: pages, links, redirects and records known beforehand, answers that fail by seed."""

import asyncio
import random

from trotline import Page, Spider
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.pace import START_SLACK
from trotline.model.task import Task


class Web:
    """Hosts with pages that link to each other, some of them by way of a redirect to any host. `truth` is what a
    complete crawl stores, `tasks` how many URLs it visits."""

    def __init__(self, seed: int, *, hosts: int = 3, pages: int = 12, moved: int = 2, scattered: bool = False) -> None:
        """`scattered`: every page is known to a page of another host alone; else to one of its own, and to others."""
        chance = random.Random(seed)
        self.seeds = [f"http://h{host}.test/0" for host in range(hosts)]
        every = [(host, page) for host in range(hosts) for page in range(pages)]
        self._links: dict[str, list[str]] = {}
        for host, page in every:
            # A chain keeps every page reachable; the rest is chance.
            links = [((host + scattered) % hosts, page + 1)] if page + 1 < pages else []
            if not scattered:
                links += chance.sample(every, k=min(4, len(every)))
            self._links[_url(host, page)] = [_url(*link) for link in links]
        self.truth = {url: {"name": url} for url in self._links}
        self._moved: dict[str, str] = {}
        for host in range(hosts):
            for number in range(moved):
                self._moved[f"http://h{host}.test/moved/{number}"] = _url(*chance.choice(every))
        for old in self._moved:
            self._links[_url(*chance.choice(every))].append(old)
        self.redirects = len(self._moved)
        self.tasks = len(self._links) + self.redirects
        self.rude = True
        """Answers may fail; False once the faults are over."""
        self._chance = random.Random(seed + 1)
        self.starts: dict[str, list[float]] = {}

    async def fetch(self, task: Task, way: object = None) -> Answer | Failure:
        await asyncio.sleep(self._chance.uniform(0.01, 0.6))
        if self.rude:
            bad = self._bad_answer(task)
            if bad is not None:
                return bad
        if task.url in self._moved:
            return Answer(url=task.url, status=301, headers=(("location", self._moved[task.url]),))
        etag = f'"{task.url}"'
        if ("If-None-Match", etag) in task.headers:
            return Answer(url=task.url, status=304)
        links = "".join(f'<a href="{link}">x</a>' for link in self._links[task.url])
        body = f"<html><h1>{task.url}</h1>{links}</html>".encode()
        headers = (("content-type", "text/html; charset=utf-8"), ("etag", etag))
        return Answer(url=task.url, status=200, headers=headers, body=body)

    def _bad_answer(self, task: Task) -> Answer | Failure | None:
        fate = self._chance.random()
        if fate < 0.03:
            return Failure(url=task.url, trouble=FailureKind.TIMEOUT, why="total time of 60 s is over")
        if fate < 0.08:
            return Answer(url=task.url, status=503)
        if fate < 0.10:
            return Answer(url=task.url, status=429, headers=(("retry-after", "3"),))
        return None

    def note_start(self, lane: str) -> None:
        """A worker decided to ask now. (A process that is frozen between deciding and sending is beyond anybody.)"""
        self.starts.setdefault(lane, []).append(asyncio.get_running_loop().time())

    def worst_window(self, rate: float) -> float:
        """By how many starts the politest bound was passed, over all lanes and windows; 0 or less is polite."""
        worst = float("-inf")
        for starts in self.starts.values():
            for first in range(len(starts)):
                for last in range(first, len(starts)):
                    allowed = rate * (starts[last] - starts[first] + START_SLACK) + 1
                    worst = max(worst, (last - first + 1) - allowed)
        return worst


def _url(host: int, page: int) -> str:
    return f"http://h{host}.test/{page}"


def spider_for(web: Web, pace: str, *, conditional: bool = True, pool: str = "") -> Spider:
    """Stores one record per page and follows every link. It asks conditionally, though its pages are no leaves: an
    "unchanged" that comes too early then loses links, and that is noticed."""
    spider = Spider("sim", pace=pace, concurrency=4, robots=False, pool=pool)

    @spider.page(seeds=web.seeds, key="name", conditional=conditional)
    def page(page: Page):  # type: ignore[no-untyped-def]
        yield {"name": page.css("h1::text").get()}
        yield page.follow()

    return spider

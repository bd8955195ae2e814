"""An interactive look at pages: what `trotline shell` gives its user. Pages are fetched as `trotline try` does it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from trotline.commands.try_page import Hop, Trial, Trier
from trotline.errors import SettingsError
from trotline.model.answer import Answer
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.model.verdict import Kind, Verdict
from trotline.processes.watchdog import Guard
from trotline.rules import charset
from trotline.spider.css_selection import Selection
from trotline.spider.page import Page
from trotline.spider.route import Route
from trotline.spider.spider import Spider
from trotline.spider.xpath_selection import XPathSelection

_TYPES = {".json": "application/json", ".xml": "application/xml", ".rss": "application/rss+xml", ".txt": "text/plain"}
_ADDRESSES = ("/", "./", "../", "?", "http://", "https://")
"""How links begin that can be nothing else."""
SAVED_URL = "https://example.com/"


def plain_spider() -> Spider:
    """For pages without a spider: any host, one page a second and host, robots.txt obeyed."""
    spider = Spider("shell", hosts=["*"])

    @spider.page
    def page(page: Page) -> None:
        """Nothing is extracted."""

    return spider


def saved_page(route: Route, file: Path, url: str) -> tuple[Task, Answer]:
    """A body from a file, as if it had come from `url`."""
    try:
        body = file.read_bytes()
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}", hint="Give a URL, or a saved page.") from error
    kind = _TYPES.get(file.suffix.lower(), "text/html")
    named = charset.encoding_of(body, None)
    headers = (("content-type", f"{kind}; charset={named}"),)
    return route.task(url), Answer(url=url, status=200, headers=headers, body=body)


class NotFetched(Exception):
    """A page that could not be fetched; the session goes on."""


class ShellSession:
    """The page in front of the user, and how to get others. Its calls block."""

    def __init__(self, spider: Spider, route: Route, trier: Trier, runner: asyncio.Runner, guard: Guard) -> None:
        self.spider = spider
        self.route = route
        """The one that reads the page if no other is named."""
        self._trier = trier
        self._runner = runner
        self._guard = guard
        self._next_start: dict[str, Moment] = {}
        self.page: Page | None = None
        self.on_page: Callable[[Page], None] = lambda page: None
        """Called with each new page."""
        self._task: Task | None = None
        self._answer: Answer | None = None
        self._hops: list[Hop] = []
        self._saved = False
        """Is it from a file?"""

    def show_saved(self, task: Task, answer: Answer) -> Page:
        self._hops = [Hop(url=answer.url, answer=answer, verdict=Verdict(Kind.OK, "from a file"))]
        self._saved = True
        return self._show(task, answer)

    def _show(self, task: Task, answer: Answer) -> Page:
        """Make it the page of the session; it is parsed under the guard."""
        page = Page(task, answer, self.route)
        with self._guard:
            _ = page.title
        self.page, self._task, self._answer = page, task, answer
        self.on_page(page)
        return page

    def fetch(self, url: str | Task, route: Route | str | None = None) -> Page:
        """Fetch another page: robots.txt, pace, limits and address checks hold as in a run."""
        self.route = self.chosen(route)
        draft = url if isinstance(url, Task) else self.route.task(self._absolute(url))
        self._keep_pace(draft)
        task, self._hops = self._runner.run(self._trier.fetch(self.route, draft))
        last = self._hops[-1]
        if not isinstance(last.answer, Answer):
            why = getattr(last.answer, "why", "") or last.verdict.why
            raise NotFetched(f"{last.url}: {last.verdict.kind.value}: {why}")
        self._saved = False
        return self._show(task, last.answer)

    def follow(self, link: str) -> Page:
        """Fetch the first link that a selector finds on the page, or a link as it is written there; NotFetched if it
        is neither: a selector that finds nothing is no address."""
        page = self._current()
        with self._guard:
            try:
                found = page.links(link)
                is_link = link.startswith(_ADDRESSES) or link in page.css("[href]::attr(href)").getall()
            except ValueError:
                # Not a selector: "/p/17", "p/17.html".
                found, is_link = [], "/" in link or link.startswith(_ADDRESSES)
        if not found and not is_link:
            raise NotFetched(f"no link of the page fits {link!r}; the page stays. A URL: fetch(...)")
        return self.fetch(found[0] if found else page.urljoin(link))

    def _absolute(self, url: str) -> str:
        """`E0099.html` as a link of the page that is shown."""
        return url if "://" in url or self.page is None else self.page.urljoin(url)

    def css(self, query: str) -> Selection:
        with self._guard:
            found = self._current().css(query)
            len(found)
        return found

    def xpath(self, query: str) -> XPathSelection:
        with self._guard:
            return self._current().xpath(query)

    def trial(self, route: Route | str | None = None) -> Trial:
        """What a route of the spider makes of the page. One that a run would not read is not read; a saved one is."""
        self._current()
        if self._task is None or self._answer is None:
            raise NotFetched("there is no page yet")
        chosen = self.chosen(route)
        task = msgspec.structs.replace(self._task, route=chosen.name)
        read = self._trier.read if self._saved else self._trier.judge_and_read
        return self._runner.run(read(chosen, task, self._answer, self._hops))

    def chosen(self, route: Route | str | None) -> Route:
        """The route of this name; None: the one that reads the page."""
        if route is None or isinstance(route, Route):
            return route or self.route
        return self.spider.route(str(route))

    def _current(self) -> Page:
        if self.page is None:
            raise NotFetched('there is no page yet; write fetch("https://...")')
        return self.page

    def _keep_pace(self, draft: Task) -> None:
        """A loop over links is a crawl: it keeps the spider's pace, too."""
        task, _ = self._trier.admitted(draft, time.time())
        wait = self._next_start.get(task.lane, 0.0) - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        self._next_start[task.lane] = time.monotonic() + 1 / self.spider.rules.default.rate.per_second

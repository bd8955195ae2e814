"""Reading a site's sitemaps, also those that an index points to."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Answer
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.rules.sitemaps import Entry, Sitemap, parse
from trotline.rules.urls import Address, read
from trotline.rules.verdicts import judge

_LARGE = 1024 * 1024
"""Beyond this, parsing goes to a thread."""
_TROUBLES = 100


class Report(msgspec.Struct):
    """What came of reading sitemaps."""

    files: int = 0
    entries: int = 0
    off_host: int = 0
    """Entries of another host than the sitemap speaks for: dropped."""
    dropped: int = 0
    """Entries that are no web address."""
    too_deep: int = 0
    """Sitemaps below the deepest level of indexes: not read."""
    troubles: list[str] = []
    """Files that could not be read, or only in part: "URL: why"."""


class SitemapReader:
    """Reads sitemaps one after another, as fast as whoever iterates takes the entries."""

    def __init__(self, fetcher: HttpFetcher, limits: Limits, report: Report | None = None) -> None:
        self._fetcher = fetcher
        self._limits = limits
        self.report = Report() if report is None else report

    async def read(self, url: str, host: str | None = None) -> AsyncIterator[Entry]:
        """The pages that the sitemap at `url` lists for `host` (by default the sitemap's own)."""
        owner = _bare(host) if host else _host(url)
        waiting = [(url, 0)]
        seen = {url}
        while waiting:
            place, depth = waiting.pop(0)
            sitemap = await self._load(place)
            for entry in sitemap.entries:
                if _host(entry.url) != owner:
                    self.report.off_host += 1
                    continue
                self.report.entries += 1
                yield entry
            for child in sitemap.children:
                if depth >= self._limits.sitemap_depth:
                    self.report.too_deep += 1
                elif child not in seen:
                    seen.add(child)
                    waiting.append((child, depth + 1))

    async def _load(self, url: str) -> Sitemap:
        answer = await self._fetch(url)
        if isinstance(answer, str):
            self._trouble(url, answer)
            return Sitemap()
        body = answer.body
        large = len(body) > _LARGE or body[:2] == b"\x1f\x8b"
        sitemap = await asyncio.to_thread(parse, body, self._limits) if large else parse(body, self._limits)
        self.report.files += 1
        self.report.dropped += sitemap.dropped
        for note in (*answer.notes, *sitemap.notes):
            self._trouble(url, note)
        return sitemap

    async def _fetch(self, url: str) -> Answer | str:
        """The answer after redirects, or why there is none."""
        address = read(url)
        if not isinstance(address, Address):
            return address.why
        task = Task(url=address.url, route="sitemap")
        while True:
            answer = await self._fetcher.fetch_start(task, self._limits.sitemap)
            verdict = judge(task, answer, limits=self._limits, now=0.0)
            if verdict.kind is Kind.MOVED:
                task = msgspec.structs.replace(task, url=verdict.location, hops=task.hops + 1)
            elif verdict.kind is Kind.OK and isinstance(answer, Answer):
                return answer
            else:
                return f"{verdict.kind.value}: {verdict.why}"

    def _trouble(self, url: str, why: str) -> None:
        if len(self.report.troubles) < _TROUBLES:
            self.report.troubles.append(f"{url}: {why}")


async def read_sitemap(
    fetcher: HttpFetcher, url: str, *, host: str | None = None, report: Report | None = None
) -> AsyncIterator[Entry]:
    """The pages that the sitemap at `url` lists, within the fetcher's limits; `report` collects what came of it.

    `host` is whose pages are wanted when a sitemap lives elsewhere, as robots.txt may say.
    """
    async for entry in SitemapReader(fetcher, fetcher.limits, report).read(url, host):
        yield entry


def _host(url: str) -> str:
    address = read(url)
    return _bare(address.host) if isinstance(address, Address) else ""


def _bare(host: str) -> str:
    """www.shop.example and shop.example are one site to everybody but DNS."""
    return host.lower().removeprefix("www.")

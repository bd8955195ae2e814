"""The meta data of a sitemap's task: which URLs are wanted, and how many files may be read below it."""

from typing import Any

import msgspec

from trotline.model.task import Task

ROUTE = "sitemap.xml"
"""The built-in route for sitemaps. The dot keeps it apart from routes of spiders."""


class SitemapSeed(msgspec.Struct, frozen=True, omit_defaults=True):
    """Passed from the file that the author named to the files that an index lists."""

    route: str
    """The spider's route that reads the pages."""
    host: str
    """Only pages of this host are wanted; the sitemap may be on another."""
    match: str = ""
    """A regular expression searched in URLs; empty: all."""
    flags: int = 0
    """Of the regular expression."""
    level: int = 0
    """Indexes above this file."""
    files: int = -1
    """Files that may be read below this one; -1 in the seed itself: all of `Limits.sitemap_files`."""
    robots: bool = False
    """The file is a robots.txt that names sitemaps."""

    def key(self, url: str) -> str:
        """The identity of the task: two seeds may select different URLs of one file."""
        return f"{self.route} {self.flags} {self.match} {url}"

    def task(self, url: str, *, priority: int, retries: int = 3, pool: str = "") -> Task:
        return Task(
            url=url,
            route=ROUTE,
            key=self.key(url),
            priority=priority,
            retries=retries,
            pool=pool,
            meta=msgspec.to_builtins(self),
        )

    @staticmethod
    def of(meta: dict[str, Any]) -> "SitemapSeed":
        """ValueError if `meta` is invalid: other programs may write to the queue."""
        return msgspec.convert(meta, SitemapSeed)

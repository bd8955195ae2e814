"""What a sitemap's task carries: which of its URLs are wanted, and how much more may be read below it."""

from typing import Any

import msgspec

from trotline.model.task import Task

ROUTE = "sitemap.xml"
"""The built-in route that reads sitemaps. No spider can have one of that name: it has a dot."""


class SitemapSeed(msgspec.Struct, frozen=True, omit_defaults=True):
    """One seed, on its way down from the file that the author named to the files that an index leads to."""

    route: str
    """The spider's route that reads the pages."""
    host: str
    """Whose pages are wanted; a sitemap may be kept on another host."""
    match: str = ""
    """A regular expression to be found in a URL; empty takes them all."""
    flags: int = 0
    """Of the regular expression."""
    level: int = 0
    """Indexes above this file."""
    files: int = -1
    """Files that may be read below this one; -1 in the seed itself: all of `Limits.sitemap_files`."""
    robots: bool = False
    """The file is a robots.txt that names sitemaps."""

    def key(self, url: str) -> str:
        """The identity of the task: two seeds may want different URLs of one file."""
        return f"{self.route} {self.flags} {self.match} {url}"

    def task(self, url: str, *, priority: int, retries: int = 3) -> Task:
        return Task(
            url=url,
            route=ROUTE,
            key=self.key(url),
            priority=priority,
            retries=retries,
            meta=msgspec.to_builtins(self),
        )

    @staticmethod
    def of(meta: dict[str, Any]) -> "SitemapSeed":
        """ValueError if that is no seed: what is in a queue may have been written by others."""
        return msgspec.convert(meta, SitemapSeed)

"""A page of the archive. Its links lead nowhere: they are looked for only if the handler looks at them."""

from collections import UserList
from collections.abc import Callable
from functools import cached_property

from trotline.spider.page import Page

MOST_QUERIES = 1000


class LaterLinks(UserList[str]):
    """Links that are found when they are read."""

    def __init__(self, find: Callable[[], list[str]]) -> None:
        self._find = find

    @cached_property
    def data(self) -> list[str]:  # type: ignore[override]
        return self._find()


class ReparsedPage(Page):
    """`tried`: selectors that have worked on some page. Others are tried at once: a wrong one fails as in a crawl."""

    __slots__ = ("tried",)
    tried: set[str]

    def _followed(self, query: str) -> list[str]:
        if query in self.tried:
            return LaterLinks(lambda: self.links(query))  # type: ignore[return-value]
        found = self.links(query)
        if len(self.tried) < MOST_QUERIES:
            self.tried.add(query)
        return found

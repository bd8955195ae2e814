"""Callbacks and errbacks as names: the methods of a spider."""

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

from scrapy import Spider

from trotline.rules.tagged_json import BadData, NotData

_CALLBACKS_OF_SCRAPY = frozenset((
    "parse", "_parse", "parse_start_url", "parse_with_rules", "parse_nodes", "parse_rows", "_parse_sitemap",
    "_callback", "_errback", "initialized",
))  # fmt: skip
"""What Scrapy's own classes of spiders give as callbacks and errbacks, or document as such."""
_NO_CALLBACKS = (frozenset(vars(Spider)) | {"start", "start_requests", "closed"}) - _CALLBACKS_OF_SCRAPY
"""What Scrapy calls itself, also where the spider overrides it."""
_LIBRARIES = ("scrapy", "trotline")
_MISSING = object()


class UnknownMethod(BadData):
    """The request was stored by another version of the spider."""


class Methods:
    """Names of the spider's methods, both ways. Only a method that the spider's own classes define, or that Scrapy
    itself uses as a callback, can be called by what is in a queue."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        self._names: dict[Any, str] = {}
        self._methods: dict[str, Callable[..., Any]] = {}
        self._read()

    def _read(self) -> None:
        for name in dir(self._spider):
            if not self._is_own(name):
                continue
            found = getattr(self._spider, name, None)
            if inspect.isroutine(found) and not inspect.isbuiltin(found):
                self._methods[name] = found
                self._names.setdefault(getattr(found, "__func__", found), name)

    def _is_own(self, name: str) -> bool:
        if name.startswith("__") or name in _NO_CALLBACKS:
            return False
        static = inspect.getattr_static(self._spider, name, None)
        if isinstance(static, property | cached_property):
            return False
        owner = next((kind for kind in type(self._spider).__mro__ if name in vars(kind)), None)
        if owner is None:
            # Of the object: a method that was added to it, and no function of another module.
            return inspect.ismethod(static) and static.__self__ is self._spider
        return name in _CALLBACKS_OF_SCRAPY or owner.__module__.partition(".")[0] not in _LIBRARIES

    def name(self, method: Callable[..., Any], what: str) -> str:
        """NotData: it is no method of the spider."""
        function = getattr(method, "__func__", method)
        bound_to = getattr(method, "__self__", self._spider)
        if bound_to is self._spider or bound_to is type(self._spider):
            name = self._names.get(function)
            if name is None:
                # It may have been added since.
                self._read()
                name = self._names.get(function)
            if name is not None:
                return name
        shown = getattr(method, "__qualname__", repr(method))
        raise NotData(
            f"the {what} {shown} is not a method of the spider {self._spider.name!r}: another process could not find it"
        )

    def find(self, name: Any) -> Callable[..., Any]:
        """UnknownMethod: the spider has none of this name. BadData: it has, and it is no callback."""
        found = self._methods.get(name) if isinstance(name, str) else None
        if found is not None:
            return found
        shown = str(name)[:100]
        if not isinstance(name, str) or name in _NO_CALLBACKS or self._has(name):
            raise BadData(f"{shown!r} of the spider {self._spider.name!r} is no callback: give a method of its own")
        raise UnknownMethod(f"the spider {self._spider.name!r} has no method {shown!r}")

    def _has(self, name: str) -> bool:
        return inspect.getattr_static(self._spider, name, _MISSING) is not _MISSING

"""Callbacks and errbacks as names: the methods of a spider."""

import inspect
from collections.abc import Callable
from typing import Any

from scrapy import Spider

from trotline.rules.tagged_json import BadData, NotData


class UnknownMethod(BadData):
    """The request was stored by another version of the spider."""


class Methods:
    """Names of the spider's methods, both ways. Only a method of the spider can be called by what is in a queue."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        self._names: dict[Any, str] = {}
        self._methods: dict[str, Callable[..., Any]] = {}
        self._read()

    def _read(self) -> None:
        for name in dir(self._spider):
            if name.startswith("__") or isinstance(inspect.getattr_static(self._spider, name), property):
                continue
            found = getattr(self._spider, name, None)
            if inspect.isroutine(found):
                self._methods[name] = found
                self._names.setdefault(getattr(found, "__func__", found), name)

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
        found = self._methods.get(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownMethod(f"the spider {self._spider.name!r} has no method {str(name)[:100]!r}")
        return found

"""Objects that downloader middlewares put into the meta of a request, as the session of a browser or of a proxy.

They are of this process. A retry or a redirect that copies them is stored without them: the middleware makes them
again, in the process that takes it.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

from trotline.bridges.scrapy.project_values import VALUES
from trotline.rules.counted_reasons import count
from trotline.rules.tagged_json import NotData

log = logging.getLogger("trotline.scrapy")


class ProcessValues:
    def __init__(self) -> None:
        self._named: Counter[str] = Counter()

    def without(self, meta: Mapping[Any, Any], stored: Mapping[Any, Any]) -> dict[Any, Any]:
        """`meta` as data. `stored`: that of the request as it was read; what a middleware has put an object into is as
        it was there."""
        found: dict[Any, Any] = {}
        for key, value in meta.items():
            try:
                VALUES.plain({key: value}, "meta")
            except NotData as error:
                self._name(str(error))
                if key in stored:
                    found[key] = stored[key]
            else:
                found[key] = value
        return found

    def _name(self, why: str) -> None:
        if count(self._named, why):
            log.warning(
                "scrapy.not_carried a retry or a redirect goes on without an object that a middleware has set: %s", why
            )

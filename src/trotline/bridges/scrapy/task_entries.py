"""Entries of an inbox in the JSON form of tasks, as requests of a spider that makes none of them itself."""

from typing import Any

from scrapy import Request, Spider

from trotline.bridges.scrapy.methods import Methods
from trotline.bridges.scrapy.start_urls import check_meta, fields_of, of_the_web
from trotline.model.task import NORMAL, Task
from trotline.model.task_json import from_seed, seed_names
from trotline.rules import task_checks

_OF_THE_FORM = frozenset(("v", "task_id", *seed_names()))
_OPEN = frozenset(("v", "url", "task_id", "method", "priority", "depth", "meta", "created_at"))
_TRUSTED = frozenset(("job_type", "headers", "body"))
"""A producer who is not trusted calls no method of the spider, and sends nothing in its name."""


class TaskEntries:
    def __init__(self, spider: Spider, *, trusted: bool) -> None:
        self._methods = Methods(spider)
        self._trusted = trusted

    def request(self, data: bytes) -> Request:
        """ValueError says why there is none."""
        text = data.decode("utf-8-sig").strip()
        if not text.startswith("{"):
            return Request(of_the_web(text), dont_filter=True)
        fields = fields_of(text)
        self._check(fields)
        return self._request(task_checks.task(from_seed(fields)))

    def _check(self, fields: dict[str, Any]) -> None:
        for name in sorted(fields):
            if name not in _OF_THE_FORM:
                raise ValueError(
                    f"unknown field {task_checks.shown(name)}: known are {', '.join(sorted(_OPEN | _TRUSTED))}. Form "
                    "data is for a RedisSpider, or for a method make_request_from_data of the spider"
                )
            if name not in _OPEN | _TRUSTED:
                raise ValueError(f"the field {name!r} means nothing to a spider of Scrapy: leave it out")
            if name in _TRUSTED and not self._trusted:
                raise ValueError(
                    f"the field {name!r} is for trusted producers only: leave it out, set it in a method "
                    "make_request_from_data of the spider, or write trust=yes in the inbox's URL"
                )

    def _request(self, task: Task) -> Request:
        check_meta(task.meta, trusted=self._trusted)
        headers: dict[str, list[str]] = {}
        for name, value in task.headers:
            headers.setdefault(name, []).append(value)
        return Request(
            of_the_web(task.url),
            self._methods.find(task.route) if task.route else None,
            method=task.method,
            headers=headers,
            body=task.body,
            meta={**task.meta, "depth": task.depth} if task.depth else task.meta,
            # Half as fine as ours, and larger goes sooner.
            priority=(NORMAL - task.priority) // 2,
            dont_filter=True,
        )

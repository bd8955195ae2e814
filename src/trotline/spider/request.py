"""A request before it is sent, for `before_request` hooks: headers and body may be changed, nothing else.

The URL, the method and the lane stay as they were admitted: scope, robots.txt, pace and the guard against private
addresses were asked about them.
"""

from collections.abc import Iterator, MutableMapping
from copy import deepcopy
from typing import Any

import msgspec

from trotline.model.task import Task
from trotline.rules.session_pinning import name_of
from trotline.rules.task_checks import InvalidValue, body, checked, headers, shown


class RequestHeaders(MutableMapping[str, str]):
    """Those of the task, with case-insensitive names; the spider's own are added where none is given here."""

    __slots__ = ("_values",)

    def __init__(self, pairs: tuple[tuple[str, str], ...]) -> None:
        self._values = {name.lower(): (name, value) for name, value in pairs}

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()][1]

    def __setitem__(self, name: str, value: str) -> None:
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"the header {shown(name)} is not text; a Secret needs .reveal()")
        try:
            # Here, and not only before it is sent: the error names the hook's line.
            headers([(name, value)])
        except InvalidValue as error:
            raise InvalidValue(f"a header of a request cannot be this one; give {error}") from None
        self._values[name.lower()] = (name, value)

    def __delitem__(self, name: str) -> None:
        del self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._values.values())

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<RequestHeaders {', '.join(self)}>"

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._values.values())


class Request:
    """What a `before_request` hook gets."""

    __slots__ = ("_task", "body", "headers")

    def __init__(self, task: Task) -> None:
        self._task = task
        self.headers = RequestHeaders(task.headers)
        self.body: bytes = task.body

    @property
    def url(self) -> str:
        return self._task.url

    @property
    def method(self) -> str:
        return self._task.method

    @property
    def route(self) -> str:
        return self._task.route

    @property
    def meta(self) -> dict[str, Any]:
        """A copy of the task's `meta`."""
        return deepcopy(self._task.meta)

    @property
    def session(self) -> str:
        return name_of(self._task.session)

    @property
    def attempt(self) -> int:
        """Attempts already spent: 0 at the first one."""
        return self._task.attempt

    def task(self) -> Task:
        """The task as it is to be sent; InvalidValue for a header that belongs to the HTTP client."""
        pairs = self.headers.pairs()
        if pairs == self._task.headers and self.body is self._task.body:
            return self._task
        return msgspec.structs.replace(
            self._task,
            headers=checked("the headers of a request", pairs, headers),
            body=checked("the body of a request", self.body, body),
        )

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.url}>"

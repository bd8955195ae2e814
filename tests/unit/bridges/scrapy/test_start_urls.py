"""The inbox of a Scrapy process: an entry that cannot be stored is parked, and the others are."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from trotline.bridges.scrapy import start_urls
from trotline.bridges.scrapy.start_urls import StartUrls
from trotline.model.inbox import InboxBatch
from trotline.model.lease import Admission
from trotline.model.task import Task


class OneBatch:
    name, idle, trusted = "wanted", 0.0, False

    def __init__(self, entries: tuple[bytes, ...]) -> None:
        self.left: list[InboxBatch] = [InboxBatch("1", entries)]
        self.parked: dict[int, str] = {}

    async def take(self) -> InboxBatch | None:
        return self.left.pop() if self.left else None

    async def done(self, batch: InboxBatch, parked: Mapping[int, str]) -> bool:
        for why in parked.values():
            why.encode()
        self.parked.update(parked)
        return True

    async def close(self) -> None: ...


class Stored:
    def __init__(self) -> None:
        self.urls: list[str] = []

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        for task in tasks:
            task.url.encode()
        self.urls += [task.url for task in tasks]
        return [Admission.NEW] * len(tasks)


async def test_a_task_that_the_frontier_cannot_store_is_parked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox, stored = OneBatch((b"a", b"b", b"c")), Stored()
    monkeypatch.setattr(start_urls.backends, "open_inbox", lambda url: inbox)
    made = [(at, Task(url=url, route="parse")) for at, url in enumerate(("http://a/", "http://b/\ud800", "http://c/"))]
    reads: Any = StartUrls("", lambda call: call(), lambda entries: (made, {}))

    await reads.run(cast(Any, stored))

    assert stored.urls == ["http://a/", "http://c/"]
    assert inbox.parked.keys() == {1}
    assert "UnicodeEncodeError" in inbox.parked[1]


async def test_a_reason_can_be_stored_and_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = OneBatch((b"a",))
    monkeypatch.setattr(start_urls.backends, "open_inbox", lambda url: inbox)
    reads: Any = StartUrls("", lambda call: call(), lambda entries: ([], {0: "\ud800 http://anna:pa55@b/" + "x" * 999}))

    await reads.run(cast(Any, Stored()))

    assert "pa55" not in inbox.parked[0]
    assert len(inbox.parked[0]) == 300

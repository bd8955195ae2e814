"""`trotline import scrapy-redis`: an entry that is no request holds up no other."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from trotline.commands.import_scrapy_redis import Imported, Wanted, _check, _move, _move_all, _previewed
from trotline.errors import SettingsError
from trotline.model.lease import Admission
from trotline.model.task import Task

WANTED = Wanted("shop", "shop", "", "", "", "", idle=0.0, delay=0.0, concurrency=1)
GOOD = pickle.dumps({"url": "https://shop.example/good"})
LAUGHS: list[Any] = ["x"] * 10
for _ in range(30):
    LAUGHS = [LAUGHS] * 10


class Keys:
    def __init__(self, entries: list[bytes]) -> None:
        self.taken = entries
        self.refused: list[bytes] = []
        self.queue, self.seen, self.again = "shop:requests", "shop:dupefilter", False

    async def entries(self) -> list[bytes]:
        return self.taken

    async def exist(self) -> bool:
        return bool(self.taken)

    async def take(self) -> bool:
        self.taken, self.refused = self.taken or self.refused, []
        return bool(self.taken)

    async def copy_filter(self) -> int:
        return 0

    async def look(self) -> AsyncIterator[list[bytes]]:
        for entry in self.taken:
            yield [entry]

    async def known(self) -> int:
        return 12

    async def done(self, entries: list[bytes], refused: list[bytes]) -> None:
        self.taken = []
        self.refused += refused


class Stored:
    def __init__(self) -> None:
        self.urls: list[str] = []

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        for task in tasks:
            task.url.encode()
        self.urls += [task.url for task in tasks]
        return [Admission.NEW] * len(tasks)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (b'{"url": "https://shop.example/", "priority": Infinity}', "its priority is inf"),
        (pickle.dumps({"url": "https://shop.example/", "priority": [1]}), "its priority is"),
        (pickle.dumps({"url": "https://shop.example/", "priority": "9" * 5000}), "4300 digits"),
        (pickle.dumps({"url": "https://shop.example/", "headers": 5}), "its headers are an int"),
        (pickle.dumps({"url": "https://shop.example/", "body": 7}), "its body is an int"),
        (pickle.dumps({"url": "https://shop.example/", "method": "GE T\r\nX: y"}), "method"),
        (pickle.dumps({"url": "https://shop.example/", "meta": {"a": LAUGHS}}), "its value is too large"),
        (pickle.dumps({"url": "https://shop.example/", "meta": {"a": 10**5000}}), "4300 digits"),
        (b'{"url": "https://shop.example/", "meta": ' + b"[" * 200_000, "nested too deeply"),
        (b'{"url": "https://shop.example/", "a": "' + b"x" * 5_000_000 + b'"}', "bytes; 4,194,304 are read"),
        (pickle.dumps({"url": "https://shop.example/\ud800", "dont_filter": True}), "UnicodeEncodeError"),
        (pickle.dumps({"url": "https://shop.example:999999/"}), "Port"),
    ],
)
async def test_a_bad_entry_is_kept_aside_and_the_others_are_moved(entry: bytes, why: str) -> None:
    keys, stored, result = Keys([GOOD, entry, GOOD]), Stored(), Imported("job")
    found = SimpleNamespace(opened=SimpleNamespace(frontier=stored), now=lambda: 5.0)

    await _move(cast(Any, keys), cast(Any, found), result, WANTED)

    assert stored.urls == ["https://shop.example/good"] * 2
    assert keys.refused == [entry]
    assert result.new == 2
    ((reason, times),) = result.refused.items()
    assert why in reason and times == 1


async def test_a_mistyped_spider_makes_no_job() -> None:
    with pytest.raises(SettingsError, match="neither 'shop:requests' nor 'shop:dupefilter' exists") as error:
        await _check(cast(Any, Keys([])), 0.0)
    assert "--queue" in error.value.hint


async def test_a_queue_that_is_empty_for_a_moment_is_imported() -> None:
    """Of a crawl without a filter, whose workers have just taken the last request."""
    keys = Keys([])
    asyncio.get_running_loop().call_later(0.1, keys.taken.append, GOOD)
    await _check(cast(Any, keys), 5.0)


async def test_what_was_refused_can_be_imported_again() -> None:
    """What is refused once more is in the same list: it must not be read for ever."""
    keys, stored, result = Keys([GOOD, b"bad"]), Stored(), Imported("job")
    keys.again = True
    found = SimpleNamespace(opened=SimpleNamespace(frontier=stored), now=lambda: 5.0)

    async with asyncio.timeout(5):
        await _move_all(WANTED, cast(Any, keys), cast(Any, found), result, lambda so_far: None)

    assert (keys.refused, result.new) == ([b"bad"], 1)


async def test_a_dry_run_counts_what_an_import_would_move() -> None:
    keys: Any = Keys([GOOD, b"bad", GOOD, b"bad"])

    found = await _previewed(keys, WANTED)

    assert (found.movable, found.known, list(found.refused.values())) == (2, 12, [2])
    assert keys.taken == [GOOD, b"bad", GOOD, b"bad"]
    assert keys.refused == []


async def test_proxies_of_the_queue_are_kept_if_its_owner_says_so() -> None:
    proxied = pickle.dumps({"url": "https://shop.example/", "meta": {"proxy": "http://one.example:3128"}})
    refused = await _previewed(cast(Any, Keys([GOOD, proxied])), WANTED)
    kept = await _previewed(cast(Any, Keys([GOOD, proxied])), msgspec.structs.replace(WANTED, keeps_proxies=True))
    assert (refused.movable, kept.movable) == (1, 2)
    assert "--keep-proxies" in next(iter(refused.refused))

"""The keys of scrapy-redis, while its workers use them."""

from typing import Any

import pytest
from redis import exceptions

from trotline.adapters.redis.scrapy_redis import BATCH, ScrapyRedisKeys
from trotline.errors import FrontierError


class Client:
    """A server with these keys; `error`: that of RENAMENX."""

    def __init__(self, *keys: str, error: str = "") -> None:
        self.keys = set(keys)
        self.error = error

    async def initialize(self) -> None: ...

    async def execute_command(self, *command: Any) -> Any:
        name, *args = command
        if name == "EXISTS":
            return len(self.keys & set(args))
        assert name == "RENAMENX"
        if self.error:
            raise exceptions.ResponseError(self.error)
        self.keys ^= set(args)
        return 1


def keys(client: Client, queue: str = "shop:requests") -> ScrapyRedisKeys:
    made = ScrapyRedisKeys("redis://127.0.0.1:1/0", queue, "shop:dupefilter")
    made._server.client = client
    return made


async def test_a_worker_that_takes_the_last_request_first_is_no_error() -> None:
    """Redis removes the key with its last entry, and RENAMENX fails then."""
    assert not await keys(Client("shop:requests", error="no such key")).take()
    assert await keys(Client("shop:requests")).take()


async def test_other_errors_of_the_server_are_reported() -> None:
    with pytest.raises(FrontierError):
        await keys(Client("shop:requests", error="WRONGTYPE")).take()


async def test_a_crawl_is_there_if_one_of_its_keys_is() -> None:
    assert not await keys(Client("other:requests")).exist()
    for name in ("shop:requests", "shop:dupefilter", "shop:requests:trotline-import", "shop:dupefilter:imported"):
        assert await keys(Client(name)).exist()


def test_what_is_refused_again_goes_back_to_its_list() -> None:
    usual, again = keys(Client()), keys(Client(), "shop:requests:trotline-refused")
    assert (usual.refused, usual.again) == ("shop:requests:trotline-refused", False)
    assert (again.refused, again.again) == ("shop:requests:trotline-refused", True)


class Queue:
    """Two queues, one of them a list and the other a sorted set, that are only read."""

    def __init__(self, **kept: list[bytes]) -> None:
        self.kept = kept

    async def initialize(self) -> None: ...

    async def execute_command(self, name: str, key: str, *place: int) -> Any:
        is_list = key == "taken" and bool(self.kept[key])
        if name == "TYPE":
            return b"list" if is_list else b"zset"
        assert name == ("LRANGE" if is_list else "ZRANGE")
        first, last = place
        return self.kept[key][first : last + 1]


@pytest.mark.parametrize("left", [0, 3, BATCH])
async def test_a_look_reads_what_an_import_has_left_and_the_queue(left: int) -> None:
    made = keys(Client())
    made.taken, made.queue = "taken", "queue"
    server: Any = Queue(taken=[b"left"] * left, queue=[b"%d" % number for number in range(BATCH + 1)])
    made._server.client = server

    found = [entry async for entries in made.look() for entry in entries]

    assert found == server.kept["taken"] + server.kept["queue"]

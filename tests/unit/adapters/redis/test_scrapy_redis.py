"""The keys of scrapy-redis, while its workers use them."""

from typing import Any

import pytest
from redis import exceptions

from trotline.adapters.redis.scrapy_redis import ScrapyRedisKeys
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

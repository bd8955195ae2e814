"""The scripts of every page as functions of the server: loaded when they are missing, and never needed."""

from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError
from tests.contract.redis_servers import server

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.scripts import LIBRARIES, script
from trotline.adapters.redis.server_functions import MOST_LIBRARIES
from trotline.testing.clients import redis_client
from trotline.testing.frontier_contract import BRISK
from trotline.testing.frontier_contract.bench import finish, tasks
from trotline.testing.redis_server import BUILDS, DEBIAN

WORK = ("put", "lease", "settle")


async def visit_all(url: str, between: Any = lambda: None) -> int:
    """The tasks that were done, in a job of its own."""
    jobs = RedisJobs(connect(url))
    await jobs._server.ask("FLUSHALL")
    job = await jobs.start("functions", BRISK)
    frontier: Any = redis_client(connect(url), job)
    try:
        for lane in ("a", "b"):
            await frontier.put(tasks(2, lane=f"{lane}.example"))
            between()
            leases = await frontier.lease("w", 1)
            between()
            await finish(frontier, "w", leases)
            between()
        return int((await frontier.progress()).done)
    finally:
        await frontier.close()
        await jobs.close()


def libraries(redis: Any) -> set[str]:
    return {name.decode() for [_, name, *_] in redis.execute_command("FUNCTION", "LIST")}


@pytest.mark.parametrize("build", BUILDS)
async def test_functions_are_loaded_when_they_are_missing_and_used_then(build: str) -> None:
    url = server(build).url
    redis: Any = Redis.from_url(url, protocol=2)

    assert await visit_all(url, lambda: redis.execute_command("FUNCTION", "FLUSH")) == 2
    assert await visit_all(url) == 2
    redis.config_resetstat()
    assert await visit_all(url) == 2

    assert {script(name).library.split()[1].removeprefix("name=") for name in WORK} <= libraries(redis)
    assert redis.info("commandstats")["cmdstat_fcall"]["calls"] == 6
    assert redis.info("commandstats")["cmdstat_fcall"]["failed_calls"] == 0


@pytest.mark.parametrize("denied", ["-fcall", "-function|load", "-function|list"])
async def test_a_user_who_may_not_use_functions_works_without(denied: str) -> None:
    place = server(DEBIAN)
    redis: Any = Redis.from_url(place.url)
    redis.execute_command("FUNCTION", "FLUSH")
    redis.execute_command("ACL", "SETUSER", "plain", "reset", "on", ">word", "~*", "&*", "+@all", denied)
    try:
        assert await visit_all(place.url.replace("//", "//plain:word@")) == 2
    finally:
        redis.execute_command("ACL", "DELUSER", "plain")


async def test_libraries_of_other_versions_do_not_pile_up() -> None:
    url = server(DEBIAN).url
    redis: Any = Redis.from_url(url, protocol=2)
    redis.execute_command("FUNCTION", "FLUSH")
    for number in [*(f"{LIBRARIES}{number}" for number in range(MOST_LIBRARIES + 5)), "others"]:
        redis.execute_command(
            "FUNCTION", "LOAD", f"#!lua name={number}\nredis.register_function('{number}', function() return 1 end)"
        )

    assert await visit_all(url) == 2

    assert "others" in libraries(redis)
    assert len(libraries(redis)) <= 1 + len(WORK)


async def test_an_error_in_a_function_is_told_and_the_next_call_is_not_disturbed() -> None:
    url = server(DEBIAN).url
    redis: Any = Redis.from_url(url)
    assert await visit_all(url) == 2

    given = ("", "client", 1, b"\x93\x90\x90\xc2")
    with pytest.raises(ResponseError, match="no such job"):
        redis.execute_command("FCALL", script("put").function, 1, "trotline:{0}:none:job", *given)
    with pytest.raises(ResponseError, match="user_function"):
        redis.hset("trotline:{0}:odd:job", "books", "damaged")
        redis.execute_command("FCALL", script("put").function, 1, "trotline:{0}:odd:job", *given)

    assert await visit_all(url) == 2

"""A Redis that was emptied in mid-job: who names the job learns that it is not known here, and what to check."""

import asyncio

import pytest
from tests.contract.redis_servers import server
from tests.unit.cli.conftest import Call, call  # noqa: F401 - a fixture

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.model.job import LaneRules
from trotline.testing.redis_server import DEBIAN


@pytest.fixture
def emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start() -> None:
        jobs = RedisJobs(connect(server(DEBIAN).url))
        await jobs.start("shop", LaneRules())
        await jobs.close()

    server(DEBIAN).command("FLUSHALL")
    asyncio.run(start())
    server(DEBIAN).command("FLUSHALL")
    monkeypatch.setenv("TROTLINE_FRONTIER", server(DEBIAN).url)


@pytest.mark.usefixtures("emptied")
@pytest.mark.parametrize("words", [("status",), ("watch",), ("watch", "--once"), ("jobs",), ("dead",), ("pause",)])
@pytest.mark.parametrize("name", ["shop", "shop-1"])
def test_a_job_that_is_named_and_not_known_is_an_error_that_says_what_to_check(
    call: Call,  # noqa: F811
    words: tuple[str, ...],
    name: str,
) -> None:
    code, out, err = call(words[0], name, *words[1:])
    assert (code, out) == (2, "")
    assert f"there is no job or spider '{name}' here" in err
    assert "answers and has no job at all" in err
    assert "restarted without its data?" in err


@pytest.mark.usefixtures("emptied")
def test_without_a_name_an_unused_server_is_no_error(call: Call) -> None:  # noqa: F811
    assert call("status")[:2] == (0, "There is no job here yet. Start one with:  trotline run FILE\n")
    assert call("jobs")[:2] == (0, "There is no such job. Start one with:  trotline start FILE\n")

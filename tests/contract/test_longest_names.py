"""Every frontier keeps the longest names that a task may have; longer ones are refused before they get there."""

import random

import pytest
from tests.contract.conftest import SqliteFileBench
from tests.contract.postgres_frontiers import WheelBench
from tests.contract.redis_servers import RedisBench

from trotline.model.job import LaneRules
from trotline.model.lease import Admission
from trotline.model.proxy_pool import lane_of
from trotline.model.task import Task
from trotline.rules import task_checks
from trotline.rules.task_checks import LONGEST_NAME, InvalidValue

POOL = "@" + "p" * 60
WIDE = 4
"""Bytes of one of its characters in UTF-8."""


def name(seed: int) -> str:
    """As long as it may be, of wide characters, and such that no server can make it much shorter."""
    chance = random.Random(seed)
    return "".join(chr(chance.randrange(0x20000, 0x2A000)) for _ in range(LONGEST_NAME // WIDE))


@pytest.fixture(params=[SqliteFileBench, RedisBench, WheelBench])
async def bench(request):
    made = request.param()
    yield made
    await made.close()


@pytest.mark.parametrize("queues", [(), ("r" * 200,)], ids=["", "a queue per route"])
async def test_a_task_with_the_longest_names_is_kept_and_leased(bench, queues):
    frontier = await bench.open(LaneRules(queues=queues))
    lane = lane_of(name(1), POOL)
    given = Task(
        url="https://shop.example/",
        route="r" * 200,
        fingerprint=1,
        lane=lane,
        chain=name(2),
        session=name(3),
        site=name(4),
        pool=POOL,
    )
    assert task_checks.task(Task(url="u", route="r", lane=name(1), chain=name(2), session=name(3), site=name(4)))
    assert await frontier.put([given]) == [Admission.NEW]
    assert [view.lane for view in await frontier.lanes()] == [lane]
    await frontier.session_home(name(3), "w")


@pytest.mark.parametrize("field", ["lane", "chain", "session", "site", "route"])
def test_a_longer_name_is_refused_with_the_limit(field):
    with pytest.raises(InvalidValue, match="at most 1,000 bytes in UTF-8"):
        task_checks.task(Task(**{"url": "u", "route": "r", field: name(1) + "x"}))
    with pytest.raises(InvalidValue, match="at most 1,000 bytes in UTF-8"):
        task_checks.task(Task(**{"url": "u", "route": "r", field: "x" * 1_001}))
    task_checks.task(Task(**{"url": "u", "route": "r", field: "x" * 1_000}))

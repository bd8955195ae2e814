"""Jobs of a schedule on a brokered frontier: their tasks wait at the broker, and retired ones leave no queues there."""

from contextlib import AsyncExitStack
from urllib.parse import quote

import pytest
from tests.contract.postgres_frontiers import WHEEL
from tests.contract.postgres_frontiers import server as postgres
from tests.contract.rabbitmq_servers import rabbit
from tests.contract.redis_servers import RedisBench

from trotline.config.backends import open_frontier, open_leadership
from trotline.testing.frontier_contract.bench import client as client_of
from trotline.testing.frontier_contract.bench import finish, lease_all, tasks
from trotline.testing.leadership_contract import RULES, lead, tick

pytestmark = [pytest.mark.xdist_group("rabbitmq"), pytest.mark.usefixtures("patient_brokers")]


def queues(job: str) -> list[str]:
    """The names of the job's."""
    return [line for line in rabbit().control("list_queues", "name").splitlines() if f".{job}." in line]


@pytest.mark.parametrize("books", ["redis", "postgresql"])
async def test_a_scheduled_job_waits_at_the_broker_until_it_is_retired(books: str) -> None:
    # Lanes of other tests on this server were used at times to come.
    place = RedisBench().place() if books == "redis" else f"{postgres(WHEEL).url}?schema=schedules"
    url = f"{rabbit().url}?books={quote(place, safe='')}"
    leadership = await open_leadership(url)
    try:
        term = await lead(leadership, election=f"nightly{books}")
        job = await leadership.start(term, tick(1.0), RULES)
        assert job is not None
        opened = client_of(await open_frontier(url, job))
        async with AsyncExitStack() as closing:
            closing.push_async_callback(opened.close)
            await opened.put(tasks(1))
            assert any("b2" in name for name in queues(job.id)), "its tasks are not at the broker"
            await opened.seal()
            await finish(opened, "w", await lease_all(opened, "w"))
            assert await opened.finished()
        assert await leadership.start(term, tick(2.0), RULES) is not None
        assert await leadership.retire(term, term.now + 3600) == [job.id]
        assert queues(job.id) == []
    finally:
        await leadership.close()

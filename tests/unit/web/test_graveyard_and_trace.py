"""The numbers of the graveyard; and a trace that costs no look at all lanes."""

import pytest

from tests.unit.web.conftest import Client, Folder
from trotline.adapters.sqlite.console import SqliteConsole
from trotline.config import backends
from trotline.model.lease import Reject, Settlement
from trotline.model.outcome import Done


async def test_dead_tasks_and_rejected_records_are_counted_apart(server: Client, folder: Folder) -> None:
    [job] = await (jobs := await backends.open_jobs(folder.settings.frontier)).all()
    await jobs.close()
    opened = await backends.open_frontier(folder.settings.frontier, job)
    [lease] = await opened.frontier.lease("w", 1)
    rejects = tuple(Reject(kind="item", data="{}", why=f"price: {number}") for number in range(2))
    await opened.frontier.settle("w", [Settlement(lease, Done(), rejects=rejects)])
    await opened.close()

    page = (await server.get(f"/jobs/{folder.job}/graveyard")).body.decode()

    assert "1 dead task and 2 rejected records, by signature" in page
    assert 'data-value="dead" title="Dead tasks. Rejected records are counted on the page.">1<' in page


async def test_a_trace_asks_for_the_lanes_of_its_url_only(
    server: Client, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a job may have a hundred thousand lanes")

    monkeypatch.setattr(SqliteConsole, "lanes", refused)
    answer = await server.get(f"/api/v1/jobs/{folder.job}/trace?url=https://shop.example/p/1")
    assert answer.status == 200, answer.body
    assert (answer.json["lane"]["lane"], answer.json["lane"]["waiting"]) == ("shop.example", 5)

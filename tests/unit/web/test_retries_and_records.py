"""The page of retries, and records that lack a field."""

import pytest

from tests.unit.web.conftest import EVIL, Client, Folder, task
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.config import backends
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Retry
from trotline.model.record import Record
from trotline.model.verdict import Kind
from trotline.rules.retry_tallies import route_tally
from trotline.web.pages import records


async def test_retries_are_shown_by_reason_lane_and_route(server: Client, folder: Folder) -> None:
    [job] = await (jobs := await backends.open_jobs(folder.settings.frontier)).all()
    await jobs.close()
    opened = await backends.open_frontier(folder.settings.frontier, job)
    [lease] = await opened.frontier.lease("w", 1)
    retry = Settlement(
        lease,
        Retry(wait=500.0, why=f"broken: {EVIL}"),
        news=LaneFeedback(Kind.BROKEN),
        tallies={route_tally("page"): 1},
        examples={f"retry: broken: {EVIL}": task("p/0").url},
    )
    await opened.frontier.settle("w", [retry])
    await opened.close()

    page = (await server.get(f"/jobs/{folder.job}/retries")).body.decode()

    assert EVIL not in page
    assert "broken: &lt;script&gt;" in page
    assert "https%3A%2F%2Fshop.example%2Fp%2F0" in page, "the example leads to its trace"
    assert '<bdi>page</bdi></td><td class="num">1</td>' in page
    assert "the last in 8 min" in page
    assert "Lanes that fail now" in page


async def test_records_without_a_field_are_found_beyond_the_first_page(
    server: Client, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_AT_ONCE", 10)
    sink = SqliteSink(f"{folder.path}/shop.db")
    data = [{"n": number, "price": "" if number == 37 else 5} for number in range(40)]
    rows = [
        Record(site="", kind="item", key=f"k{one['n']:02}", url=task("x").url, seen_at=1.0, data=one) for one in data
    ]
    await sink.write(rows)
    await sink.close()

    found = (await server.get(f"/jobs/{folder.job}/records?kind=item&lacks=price")).body.decode()
    none = (await server.get(f"/jobs/{folder.job}/records?kind=item&lacks=n")).body.decode()

    assert "1 among the 40 that were looked through" in found
    assert "k37" in found and "k36" not in found
    assert "0 among the 40" in none

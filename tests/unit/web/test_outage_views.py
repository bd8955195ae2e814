"""What the dashboard says in an outage, and after it."""

from tests.unit.web.conftest import Client, Folder
from trotline.config import backends
from trotline.model.job import Progress, WorkerInfo
from trotline.rules.time_series import Point
from trotline.web.job_snapshots import _rate

AWAY = "sink is unreachable: connection refused"


def test_the_rate_after_a_gap_is_that_of_after_it() -> None:
    """Of 100 s of outage nothing is averaged in."""
    before = [Point(at=at, done=10 * at) for at in range(0, 50, 5)]
    after = [Point(at=at, done=500 + 10 * (at - 150)) for at in range(150, 161, 5)]
    for number, rate in ((1, None), (2, 10.0), (3, 10.0)):
        points = [*before, *after[:number]]
        now = Progress(waiting=1, leased=0, done=points[-1].done, dead=0, now=float(points[-1].at))
        assert _rate(points, now) == rate
    assert _rate(before, Progress(waiting=1, leased=0, done=450, dead=0, now=45.0)) == 10.0


async def test_a_sink_that_is_down_is_a_warning_with_what_to_do(server: Client, folder: Folder) -> None:
    [job] = await (jobs := await backends.open_jobs(folder.settings.frontier)).all()
    await jobs.close()
    opened = await backends.open_frontier(folder.settings.frontier, job)
    await opened.frontier.beat("host-1.1", WorkerInfo(held_back=AWAY))
    await opened.close()

    page = (await server.get(f"/jobs/{folder.job}")).body.decode()

    assert f'<p class="banner bad" id="sentence" data-live>Held back: {AWAY} (1 of 1 worker); nothing is lost' in page
    assert "check it: trotline doctor shop.py" in page
    limits = page.partition('id="limits"')[2].partition("</section>")[0]
    assert f"held back: {AWAY}" in limits
    assert "Pages/s it allows" not in limits


async def test_a_row_of_the_overview_is_one_snapshot(server: Client) -> None:
    """A number that ticks alone would not add up with the others of its row."""
    page = (await server.get("/")).body.decode()
    table = page.partition("<tbody>")[2].partition("</tbody>")[0]
    assert "data-job" in table
    assert "data-value" not in table

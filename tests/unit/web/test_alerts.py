"""Alerts by the API, and on their page."""

import time

import pytest

from tests.unit.web.conftest import EVIL, Client, Folder
from trotline.config import backends
from trotline.model.alert import Alert, AlertBook, AlertState, Severity
from trotline.rules import alert_states
from trotline.rules.alerts import RULES
from trotline.web.pages.alerts import _PAGES


@pytest.fixture
def checked_ago() -> float:
    return 1.0


@pytest.fixture
async def firing(folder: Folder, checked_ago: float) -> None:
    """A critical alert for 12 minutes, with hostile texts; and one that is over."""
    since = time.time() - 12 * 60
    book = AlertBook(
        checked_at=time.time() - checked_ago,
        alerts=(
            Alert(rule="worker", object="w-1", state=AlertState.RESOLVED, since=since, ended_at=since + 60),
            Alert(
                rule="errors",
                object=EVIL,
                state=AlertState.FIRING,
                severity=Severity.CRITICAL,
                since=since,
                fired_at=since,
                text=EVIL,
                next="trotline status shop-1",
            ),
        ),
        more={"worker": 3},
    )
    [job] = await (jobs := await backends.open_jobs(folder.settings.frontier)).all()
    await jobs.close()
    opened = await backends.open_frontier(folder.settings.frontier, job)
    assert await opened.console.write_note(alert_states.NOTE, alert_states.encode(book), 0)
    await opened.close()


@pytest.mark.usefixtures("firing")
async def test_the_alerts_of_a_job_and_of_all_jobs_say_for_how_long(server: Client, folder: Folder) -> None:
    one, all_ = [(await server.get(f"/api/v1/{path}")).json for path in (f"jobs/{folder.job}/alerts", "alerts")]
    errors, worker = one["alerts"]
    assert (errors["rule"], errors["state"], errors["severity"]) == ("errors", "firing", "critical")
    assert 720 <= errors["lasted"] < 780
    assert (worker["state"], worker["lasted"], one["more"]) == ("resolved", 60.0, 3)
    assert [each["rule"] for each in all_["alerts"]] == ["errors", "worker"]
    assert (all_["jobs"], all_["jobs_left_out"], all_["unreachable"]) == (1, 0, {})
    assert (await server.get("/api/v1/jobs/none-1/alerts")).status == 404


@pytest.mark.usefixtures("firing")
async def test_the_page_says_for_how_long_and_leads_to_the_errors(server: Client, folder: Folder) -> None:
    page = (await server.get("/alerts")).body.decode()
    assert f'href="/jobs/{folder.job}#errors"' in page
    assert "for 12 min" in page
    assert EVIL not in page
    assert "for 12 min" in (await server.get(f"/jobs/{folder.job}")).body.decode()


@pytest.mark.usefixtures("firing")
@pytest.mark.parametrize(("checked_ago", "late"), [(1.0, False), (600.0, True)])
async def test_alerts_that_no_process_checks_any_more_are_named(server: Client, folder: Folder, late: bool) -> None:
    """A coordinator was killed: the list is as old as its last look."""
    text = "its alerts were last checked 10 min ago: no coordinator runs; start one: trotline coordinate shop.py"
    for path in ("/alerts", "/", f"/jobs/{folder.job}"):
        assert (text in (await server.get(path)).body.decode()) is late, path
    for path in ("alerts", f"jobs/{folder.job}/alerts"):
        assert (await server.get(f"/api/v1/{path}")).json["unchecked"] == ({folder.job: text} if late else {})


async def test_a_job_that_was_never_checked_is_named_on_the_page_of_alerts_only(server: Client) -> None:
    text = "its alerts are not checked: no coordinator runs"
    assert text in (await server.get("/alerts")).body.decode()
    assert "No alert is known, and not all jobs are checked." in (await server.get("/alerts")).body.decode()
    assert text not in (await server.get("/")).body.decode()


def test_every_rule_leads_to_a_page() -> None:
    assert set(_PAGES) == set(RULES)

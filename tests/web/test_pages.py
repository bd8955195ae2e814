"""The pages in a real browser, against a real fleet. A message in the browser's console fails the test."""

import asyncio
import json
import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.conftest import QUICK, SLOW, Viewer
from tests.web.dashboard import OPERATE, VIEW, Dashboard
from tests.web.hostile_site import ATTACK, BLOCKED, BROKEN, HANDLER, HOSTS

from trotline.config import backends
from trotline.model.alert import Alert, AlertBook, AlertState, Severity
from trotline.rules import alert_states
from trotline.testing.servers import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow("starts a browser and a fleet"), pytest.mark.xdist_group("dashboard")]
PAGES = (
    "",
    "/lanes",
    "/workers",
    "/in-flight",
    "/proxies",
    "/accounts",
    "/retries",
    "/graveyard",
    "/records",
    "/trace",
)


@pytest.fixture(scope="session")
def axe() -> str:
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        missing("axe-core is not installed: pip install -r requirements/dev.txt")
    return Path(found.origin).with_name("axe.min.js").read_text()


def test_a_wrong_token_is_refused_and_the_right_one_leads_back(browser: "Browser", fleet: Dashboard) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{fleet.url}/jobs/{fleet.job_of(QUICK)}")
    assert page.url.startswith(f"{fleet.url}/login?next=")
    page.get_by_label("Token").fill("wrong" * 10)
    page.get_by_role("button", name="Log in").click()
    assert "not a token" in page.get_by_role("alert").inner_text()
    page.get_by_label("Token").fill(VIEW)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{fleet.url}/jobs/{fleet.job_of(QUICK)}")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{fleet.url}/login")
    context.close()


def test_every_page_opens_is_accessible_and_fits(operator: Viewer, fleet: Dashboard, axe: str) -> None:
    quick, slow = fleet.job_of(QUICK), fleet.job_of(SLOW)
    ended = ["/", "/alerts", *(f"/jobs/{quick}{page}" for page in PAGES), f"/jobs/{quick}/graveyard/revive"]
    ended.append(f"/jobs/{quick}/trace?url={fleet.hosts[QUICK][0]}/broken/0")
    page = operator.tab()
    for paths, scheme, width in ((ended, "light", 1440), ([f"/jobs/{slow}{one}" for one in PAGES], "dark", 390)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 844})
        for path in paths:
            answer = page.goto(fleet.url + path)
            assert answer is not None and answer.status == 200, path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            page.evaluate(axe)
            found = page.evaluate("axe.run({resultTypes: ['violations'], elementRef: false})")
            bad = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
            assert not bad, (path, scheme, [(one["id"], one["nodes"][0]["html"][:300]) for one in bad])


def test_figures_move_without_a_reload(operator: Viewer, fleet: Dashboard) -> None:
    from playwright.sync_api import expect

    page = operator.open(f"/jobs/{fleet.job_of(SLOW)}")
    page.evaluate("window.mark = 1")
    done = page.locator(".legend [data-value=done]")
    before = done.inner_text()
    details = page.locator("#table-speed")
    details.locator("summary").click()
    expect(done).not_to_have_text(before, timeout=15_000)
    # The survey of lanes and the charts come with the page itself, which is asked for every 5 s.
    chart = page.locator("#chart-speed")
    drawn = chart.get_attribute("data-chart")
    expect(chart).not_to_have_attribute("data-chart", drawn or "", timeout=15_000)
    assert details.get_attribute("open") is not None
    assert page.evaluate("window.mark") == 1


def test_a_chart_shows_values_under_the_pointer_and_by_keys(operator: Viewer, fleet: Dashboard) -> None:
    from playwright.sync_api import expect

    page = operator.open(f"/jobs/{fleet.job_of(SLOW)}")
    # Three points at least; they come every 5 s.
    expect(page.locator("#chart-totals")).to_have_attribute(
        "data-chart", re.compile(r'"at":\["[^"]+","[^"]+","'), timeout=30_000
    )
    picture = page.locator("#chart-totals svg")
    time = page.locator("#chart-totals [data-at]")
    picture.hover(position={"x": 5, "y": 20})
    assert re.fullmatch(r"\d\d:\d\d:\d\d UTC", time.inner_text())
    first = time.inner_text()
    picture.focus()
    page.keyboard.press("End")
    assert time.inner_text() != first


def test_a_chart_ends_with_the_total_of_the_job(operator: Viewer, fleet: Dashboard) -> None:
    page = operator.open(f"/jobs/{fleet.job_of(QUICK)}")
    total = page.locator("#chart-totals [data-line]").first.inner_text().replace(",", "")
    assert float(total) == fleet.api(f"jobs/{fleet.job_of(QUICK)}")["admitted"]


def test_pause_and_resume(operator: Viewer, fleet: Dashboard) -> None:
    job = fleet.job_of(SLOW)
    page = operator.open(f"/jobs/{job}")
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Paused: what is leased is finished").wait_for()
    assert fleet.api(f"jobs/{job}")["state"] == "paused"
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("Resumed.").wait_for()
    fleet.until(job, lambda view: view["state"] == "running")


def test_a_lane_gets_another_pace(operator: Viewer, fleet: Dashboard) -> None:
    job, lane = fleet.job_of(SLOW), fleet.hosts[SLOW][2].partition("://")[2]
    page = operator.open(f"/jobs/{job}/lanes?lane={lane}")
    page.get_by_label("Pace").fill("40/m")
    page.get_by_role("button", name="Set for all jobs").click()
    page.get_by_text("The pace is set").wait_for()
    ordered = fleet.api(f"jobs/{job}/lanes/pace?lane={lane}")["pace"]["ordered"]
    assert ordered["rate"]["per_second"] == pytest.approx(2 / 3)
    operator.expected = "status of 400"
    page.get_by_label("Pace").fill("fast")
    page.get_by_role("button", name="Set for all jobs").click()
    page.get_by_role("heading", name="That did not work").wait_for()


def test_foreign_text_is_shown_and_never_run(operator: Viewer, fleet: Dashboard) -> None:
    quick = fleet.job_of(QUICK)
    for path in (f"/jobs/{quick}", f"/jobs/{quick}/graveyard?why=handler", f"/jobs/{quick}/records"):
        page = operator.open(path)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.evaluate("window.hurt") is None
    assert "<script>window.hurt=1</script>" in page.locator("main").inner_text()
    # The mark that turns the direction, and the one that has no width, are shown as what they are.
    assert "\u202e" not in page.locator("main").inner_text()
    assert "\ufffd" in page.locator("main").inner_text()


def test_a_url_is_traced(operator: Viewer, fleet: Dashboard) -> None:
    job, url = fleet.job_of(QUICK), f"{fleet.hosts[QUICK][1]}/broken/0"
    page = operator.open(f"/jobs/{job}/trace")
    page.get_by_label("URL").fill(url)
    page.keyboard.press("Enter")
    page.get_by_text("Dead: broken: 500").wait_for()
    shown = page.locator(".timeline").inner_text()
    assert "Found" in shown and "Visit 1: buried" in shown and "500 broken" in shown
    page.get_by_role("link", name=f"{fleet.hosts[QUICK][1]}/", exact=True).click()
    page.get_by_text("Read: 0 records").wait_for()


def test_records_are_searched_and_downloaded(operator: Viewer, fleet: Dashboard) -> None:
    job = fleet.job_of(QUICK)
    page = operator.open(f"/jobs/{job}/records")
    page.keyboard.press("/")
    page.keyboard.type(f"{fleet.hosts[QUICK][0]}/item/1")
    page.keyboard.press("Enter")
    page.wait_for_url("**prefix=*")
    assert page.locator("tbody tr").count() == 11  # 1, and 10 to 19
    with page.expect_download() as begun:
        page.get_by_role("link", name="jsonl").click()
    file = begun.value.path()
    lines = [json.loads(line) for line in Path(file).read_text().splitlines()]
    assert len(lines) == fleet.api(f"jobs/{job}")["records"]


def test_dark_mode_is_kept(operator: Viewer, fleet: Dashboard) -> None:
    page = operator.open("/")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 28, 35)" != light
    page = operator.open(f"/jobs/{fleet.job_of(QUICK)}")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 28, 35)"
    page.get_by_role("button", name="Light or dark").click()


def test_keys_lead_to_pages(operator: Viewer, fleet: Dashboard) -> None:
    job = fleet.job_of(QUICK)
    page = operator.open(f"/jobs/{job}")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url(f"**/jobs/{job}/graveyard")
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keys").is_visible()


def test_a_viewer_sees_no_buttons_and_is_refused(browser: "Browser", fleet: Dashboard) -> None:
    context = browser.new_context()
    viewer = Viewer(context, fleet)
    viewer.log_in(VIEW)
    page = viewer.open(f"/jobs/{fleet.job_of(SLOW)}")
    assert page.get_by_role("button", name="Pause").count() == 0
    page = viewer.open(f"/jobs/{fleet.job_of(QUICK)}/graveyard")
    assert page.get_by_role("link", name="Revive").count() == 0
    answer = page.request.post(
        f"{fleet.url}/jobs/{fleet.job_of(SLOW)}/steer", form={"verb": "pause"}, headers={"Origin": fleet.url}
    )
    assert answer.status == 403
    assert "Not allowed" in answer.text()
    assert fleet.api(f"jobs/{fleet.job_of(SLOW)}")["state"] == "running"
    context.close()


def test_a_page_without_javascript_does_the_same(browser: "Browser", fleet: Dashboard) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = Viewer(context, fleet).log_in(OPERATE)
    page.get_by_role("link", name=fleet.job_of(SLOW)).click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").click()
    assert page.get_by_text("Resumed.").is_visible()
    context.close()


def test_old_figures_are_marked(operator: Viewer, fleet: Dashboard) -> None:
    from playwright.sync_api import expect

    assert fleet.web is not None
    page = operator.open(f"/jobs/{fleet.job_of(SLOW)}")
    shown = page.locator(".legend [data-value=admitted]").inner_text()
    operator.expected = "net::ERR"
    os.kill(fleet.web.pid, signal.SIGSTOP)
    try:
        expect(page.locator("#stale")).to_be_visible(timeout=20_000)
        assert page.locator(".legend [data-value=admitted]").inner_text() == shown
    finally:
        os.kill(fleet.web.pid, signal.SIGCONT)
    expect(page.locator("#stale")).to_be_hidden(timeout=20_000)


def test_a_group_is_revived(operator: Viewer, fleet: Dashboard) -> None:
    job = fleet.job_of(QUICK)
    fleet.site.healed = True
    before = fleet.api(f"jobs/{job}")
    assert before["dead"] == (BROKEN + BLOCKED + HANDLER) * HOSTS
    page = operator.open(f"/jobs/{job}/graveyard")
    page.get_by_role("row", name="broken: 500").get_by_role("link", name="Revive").click()
    page.get_by_role("button", name=f"Revive {BROKEN * HOSTS}").click()
    page.get_by_text("Done.").wait_for()
    assert f"{BROKEN * HOSTS} pages will be visited again" in page.locator("#revived").inner_text()
    after = fleet.until(job, lambda view: view["done"] == before["done"] + BROKEN * HOSTS)
    assert after["dead"] == before["dead"] - BROKEN * HOSTS


def test_an_alert_is_on_its_page_and_on_the_job(operator: Viewer, fleet: Dashboard) -> None:
    job = fleet.job_of(SLOW)
    book = AlertBook(
        alerts=(
            Alert(
                rule="errors", object=ATTACK, state=AlertState.FIRING, severity=Severity.CRITICAL, since=1.0,
                text="30 of 40 attempts failed", next="trotline dead slow",
            ),
        )
    )  # fmt: skip

    async def write() -> None:
        jobs = await backends.open_jobs(fleet.frontier)
        [found] = [one for one in await jobs.all() if one.id == job]
        await jobs.close()
        opened = await backends.open_frontier(fleet.frontier, found)
        [note] = await opened.console.read_notes([alert_states.NOTE])
        assert await opened.console.write_note(
            alert_states.NOTE, alert_states.encode(book), note.version if note else 0
        )
        await opened.close()

    # Playwright has an event loop in this thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(write())).result()
    page = operator.open("/alerts")
    page.reload()
    from playwright.sync_api import expect

    expect(page.locator("#firing-box")).to_contain_text("30 of 40 attempts failed", timeout=15_000)
    assert ATTACK in page.locator("#firing-box").inner_text()
    page.get_by_role("link", name=job).first.click()
    expect(page.locator("#job-alerts")).to_contain_text("trotline dead slow", timeout=15_000)
    assert page.evaluate("window.hurt") is None

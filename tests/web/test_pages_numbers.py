"""The numbers on the pages are those of the frontier, the ledger and the store, also after a crash."""

import os
import re
import signal
import sqlite3
from contextlib import closing

import pytest
from tests.web.conftest import Viewer
from tests.web.dashboard import Dashboard

pytestmark = [pytest.mark.slow("starts a browser and a fleet"), pytest.mark.xdist_group("dashboard")]


def _number(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def test_after_a_crash_pages_ledger_and_store_agree(operator: Viewer, fleet: Dashboard) -> None:
    file = fleet.spider("crash", "25/s")
    fleet.call("start", file, "--detach")
    workers = [fleet.start("work", file, "--json", "--slots", "4", "--until-finished") for _ in range(2)]
    job = fleet.job_of("crash")
    fleet.until(job, lambda view: view["workers"] == 2 and view["done"] >= 10)
    os.killpg(workers[0].pid, signal.SIGKILL)
    view = fleet.until(job, lambda view: view["state"] == "finished")

    with closing(sqlite3.connect(fleet.folder / "crash.db")) as store:
        # A page that was stored but not settled when its worker died was visited again: it counts once.
        ended = dict(
            store.execute(
                "SELECT outcome, count(DISTINCT fingerprint) FROM visits WHERE job = ? AND outcome IN ('done', 'bury')"
                " GROUP BY outcome",
                (job,),
            )
        )
        [rows] = store.execute("SELECT count(*) FROM records").fetchone()

    page = operator.open(f"/jobs/{job}")
    shown = {name: _number(page.locator(f".legend [data-value={name}]").inner_text()) for name in ("done", "dead")}
    assert shown == {"done": ended["done"], "dead": ended["bury"]} == {"done": view["done"], "dead": view["dead"]}
    assert _number(page.locator("#rail-job [data-value=dead]").inner_text()) == ended["bury"]
    drawn = page.locator("#chart-totals [data-line]").last.inner_text()
    assert _number(drawn) == ended["done"] + ended["bury"]

    page = operator.open(f"/jobs/{job}/graveyard")
    by_signature = [_number(cell.inner_text()) for cell in page.locator("#reasons tbody td:nth-child(2)").all()]
    assert sum(by_signature) == ended["bury"]

    page = operator.open(f"/jobs/{job}/records")
    options = [text for text in page.locator("#kind option").all_inner_texts() if "(" in text]
    assert sum(_number(text.rpartition("(")[2]) for text in options) == rows
    assert page.locator("#rail-job [data-value=records]").inner_text() == f"{view['records']:,}"

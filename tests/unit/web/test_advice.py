"""Advice and the signal for autoscalers, by the API."""

from tests.unit.web.conftest import VIEW, Client, Folder, Serving, task
from trotline.config import backends
from trotline.config.settings import Settings
from trotline.model.job import LaneRules
from trotline.rules.advice import Scale
from trotline.web.api.advice import _sum


def _scale(wanted: int | None, rate: float | None = 1.0, limit: str = "pace") -> Scale:
    return Scale(wanted_workers=wanted, admissible_per_second=rate, limit=limit)


def test_the_sum_over_spiders_is_unknown_if_one_is() -> None:
    assert (3, 3.5) == (_sum([_scale(1), _scale(2, 2.5)]).wanted_workers, 3.5)
    assert None is _sum([_scale(1), _scale(None)]).wanted_workers
    assert None is _sum([_scale(1), _scale(1, None)]).admissible_per_second
    assert "slots" == _sum([_scale(1), _scale(4, limit="slots")]).limit
    assert 0 == _sum([]).wanted_workers


async def test_a_job_without_measurements_is_unknown_and_a_paused_one_wants_no_worker(
    server: Client, folder: Folder
) -> None:
    answer = (await server.get(f"/api/v1/jobs/{folder.job}/advice")).json
    assert "unknown" == answer["advice"]["limit"] and answer["advice"]["gain"] is None
    scale = (await server.get("/api/v1/scale?spider=shop")).json
    assert scale["wanted_workers"] is None
    await server.post(f"/api/v1/jobs/{folder.job}/pause")
    assert 0 == (await server.get(f"/api/v1/jobs/{folder.job}/scale")).json["wanted_workers"]
    assert 0 == (await server.get("/api/v1/scale?spider=other")).json["wanted_workers"]


async def test_a_job_without_a_worker_wants_its_first_one(serving: Serving, folder: Folder) -> None:
    jobs = await backends.open_jobs(folder.settings.frontier)
    job = await jobs.start("alone", LaneRules(), "")
    await jobs.close()
    opened = await backends.open_frontier(folder.settings.frontier, job)
    await opened.frontier.put([task("p/1")])
    await opened.close()
    client = await serving(folder.settings)
    for path in ("/api/v1/scale?spider=alone", f"/api/v1/jobs/{job.id}/scale"):
        found = (await client.get(path)).json
        assert (1, "no worker") == (found["wanted_workers"], found["limit"])


async def test_while_the_frontier_is_away_an_autoscaler_gets_no_number(serving: Serving) -> None:
    client = await serving(Settings(frontier="redis://127.0.0.1:1/0", sink="sqlite:x.db"))
    assert 503 == (await client.get("/api/v1/scale")).status


async def test_reviving_through_a_pool_that_does_not_exist_is_refused(server: Client, folder: Folder) -> None:
    path = f"/api/v1/jobs/{folder.job}/graveyard/revive"
    assert 409 == (await server.post(path, {"why": "", "pool": "nowhere"})).status
    assert 400 == (await server.post(path, {"why": "", "pool": "@buyers"})).status
    assert 400 == (await server.post(path, {})).status
    answer = await server.post(path, {"why": "broken", "pool": "direct"})
    assert (200, 1) == (answer.status, answer.json["revived"])


async def test_the_servers_own_metrics_are_for_viewers(guarded: Client) -> None:
    assert 401 == (await guarded.get("/metrics")).status
    await guarded.get("/api/v1/health")
    text = (await guarded.get("/metrics", token=VIEW)).body.decode()
    assert 'trotline_web_requests_total{method="GET",status="200"} 1.0' in text
    assert 'trotline_web_requests_total{method="GET",status="401"} 1.0' in text
    assert "trotline_web_streams 0.0" in text

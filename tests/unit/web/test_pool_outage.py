"""Proxies of a job that all rest: the API and the dashboard say what `trotline status` says."""

from pathlib import Path

from tests.unit.web.conftest import Serving
from trotline.config import backends
from trotline.config.settings import Settings
from trotline.model.job import LaneRules, WorkerInfo
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Snooze
from trotline.model.proxy_pool import MemberResult
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract.bench import task
from trotline.testing.frontier_contract.pool_bench import POOL, VIA_POOL, pool_with, through

SENTENCE = f"all 2 proxies of pool {POOL} rest for shop.example, first back in "


async def job_at_rest(frontier: str) -> str:
    """Both proxies are banned, and five tasks wait for them."""
    jobs = await backends.open_jobs(frontier)
    job = await jobs.start("shop", LaneRules(), "")
    await jobs.close()
    pools = await backends.open_proxy_pools(frontier)
    await pools.register(pool_with(1, 2))
    await pools.close()
    opened = await backends.open_frontier(frontier, job)
    await opened.frontier.put(through(5))
    await opened.frontier.beat("w", WorkerInfo(pools=(POOL,)))
    for _ in range(2):
        [lease] = await opened.frontier.lease("w", 1, pools=(POOL,))
        blocked = Settlement(lease, Snooze(0.0, "blocked"), news=LaneFeedback(Kind.OK), member=MemberResult.BLOCKED)
        await opened.frontier.settle("w", [blocked])
    await opened.close()
    return job.id


async def test_all_proxies_of_a_pool_rest(tmp_path: Path, serving: Serving) -> None:
    settings = Settings(frontier=f"sqlite:{tmp_path}/frontier.db")
    job = await job_at_rest(settings.frontier)
    server = await serving(settings)

    view = (await server.get(f"/api/v1/jobs/{job}")).json
    lanes = (await server.get(f"/api/v1/jobs/{job}/lanes")).json
    page = (await server.get(f"/jobs/{job}")).body.decode()

    assert view["held_back"].startswith(SENTENCE)
    assert view["pool_troubles"] == [view["held_back"]]
    assert view["eta"]["unknown"] == "no estimate: no proxy or account is free"
    assert lanes["troubles"] == {VIA_POOL: view["held_back"]}
    assert f"Held back: {SENTENCE}" in page
    assert f"<bdi>{SENTENCE}" in page.partition('id="lanes"')[2], "the lane says it, too"


async def test_a_job_with_other_tasks_is_not_held_back_and_says_it_all_the_same(
    tmp_path: Path, serving: Serving
) -> None:
    settings = Settings(frontier=f"sqlite:{tmp_path}/frontier.db")
    job = await job_at_rest(settings.frontier)
    [found] = await (jobs := await backends.open_jobs(settings.frontier)).all()
    await jobs.close()
    opened = await backends.open_frontier(settings.frontier, found)
    await opened.frontier.put([task("https://other.example/1")])
    await opened.close()
    server = await serving(settings)

    view = (await server.get(f"/api/v1/jobs/{job}")).json
    page = (await server.get(f"/jobs/{job}")).body.decode()

    assert view["held_back"] == ""
    assert view["pool_troubles"][0].startswith(SENTENCE)
    assert f'<p class="banner"><bdi>{SENTENCE}' in page

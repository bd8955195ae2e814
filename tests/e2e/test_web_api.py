"""What operators do by the API, on real jobs with real workers: on files and on servers."""

import asyncio
import csv
import io
import json
import time
from typing import Any

from tests.e2e.fleet import Fleet
from tests.e2e.web_server import Web, web, write_spider

from trotline.testing.shop import DemoShop

WITHIN = 30.0


async def until(server: Web, path: str, fits: Any) -> Any:
    """The first answer that fits."""
    async with asyncio.timeout(WITHIN):
        while True:
            answer = await server.get(path)
            assert answer.status == 200, answer.body
            if fits(answer.json):
                return answer.json
            await asyncio.sleep(0.2)


async def test_a_job_is_created_steered_extended_and_forgotten_by_the_api(fleet: Fleet, shop: DemoShop) -> None:
    write_spider(fleet.folder, shop.url, pace="20/s")
    env = fleet.environment
    async with web(fleet.folder, "shop.py", env=env) as server:
        created = await server.post("/api/v1/jobs", {"spider": "shop"})
        assert (201, False) == (created.status, created.json["resumed"])
        job = f"/api/v1/jobs/{created.json['job']}"
        await until(server, job, lambda now: now["admitted"] == 3)
        assert created.json["job"] == (await server.post("/api/v1/jobs", {"spider": "shop"})).json["job"]

        assert 200 == (await server.post(f"{job}/pause")).status
        worker = await fleet.start("work", "shop.py", "--until-finished")
        await until(server, f"{job}/workers", lambda now: len(now["workers"]) == 1)
        assert "paused" == (await server.get(job)).json["state"]
        assert 0 == (await server.get(job)).json["done"]

        more = f'{shop.url}/p/T50\n{{"url": "{shop.url}/p/T51", "job_type": "product"}}\nnonsense\n'
        sent = {"Content-Type": "application/x-ndjson"}
        added = await server.post(f"{job}/tasks?route=product", json=None, data=more, headers=sent)
        *bad, totals = [json.loads(line) for line in added.body.splitlines()]
        assert ([3], 2) == ([line["line"] for line in bad], totals["new"])

        assert 200 == (await server.post(f"{job}/resume")).status
        done = await until(server, job, lambda now: now["state"] == "finished")
        assert 0 == (await worker.end()).code or done["dead"]
        assert (16, 1) == (done["done"], done["dead"])

        errors = (await server.get(f"{job}/errors")).json
        [dead] = [one for one in errors["errors"] if one["why"]]
        assert dead["example"]["url"] == f"{shop.url}/down/b" and dead["example"]["id"]
        graves = (await server.get(f"{job}/graveyard?why=broken")).json
        assert [dead["example"]["id"]] == [grave["id"] for grave in graves["graves"]]
        preview = await server.post(f"{job}/graveyard/revive", {"why": "broken", "dry_run": True})
        assert (1, 0) == (preview.json["matching"], preview.json["revived"])
        revived = await server.post(f"{job}/graveyard/revive", {"ids": [dead["example"]["id"]]})
        assert 1 == revived.json["revived"]
        now = (await server.get(job)).json
        assert (0, 1) == (now["dead"], now["waiting"])

        assert 409 == (await server.delete(job)).status
        assert 200 == (await server.delete(f"{job}?force=true")).status
        assert 404 == (await server.get(job)).status
        ended = await server.stop()
    changes = [json.loads(line) for line in ended.err.splitlines() if "web.change" in line]
    assert ["POST", "POST", "POST", "POST", "POST", "POST", "POST", "DELETE", "DELETE"] == [
        one["method"] for one in changes
    ]
    assert all(one["who"] == "operate by local" and one["address"] == "127.0.0.1" for one in changes)


async def test_what_is_shown_is_what_is_stored(fleet: Fleet, shop: DemoShop) -> None:
    write_spider(fleet.folder, shop.url)
    await fleet.call("run", "shop.py")
    [truth] = (await fleet.call("status", "shop", "--json")).events
    trace = (await fleet.call("trace", f"{shop.url}/p/T3", "shop-1", "--json")).events[0]
    exported = (await fleet.call("export", "shop-1")).out
    async with web(fleet.folder, env=fleet.environment) as server:
        job = "/api/v1/jobs/shop-1"
        progress = (await server.get(f"{job}/progress")).json
        assert truth["tallies"] == progress["tallies"]
        assert truth["reasons"] == (await server.get(f"{job}/errors")).json["reasons"]
        assert truth["dead"] == progress["job"]["dead"] == len((await server.get(f"{job}/graveyard")).json["graves"])

        found = (await server.get(f"{job}/trace?url={shop.url}/p/T3")).json
        assert {name: trace[name] for name in ("fate", "visits", "rows")} == {
            name: found[name] for name in ("fate", "visits", "rows")
        }
        rows = (await server.get(f"{job}/records/download")).text
        assert sorted(exported.splitlines()) == sorted(rows.splitlines())
        table = (await server.get(f"{job}/records/download?format=csv")).text
        assert len(rows.splitlines()) == len(list(csv.DictReader(io.StringIO(table))))

        points = (await server.get(f"{job}/series")).json
        last = dict(zip(points["columns"], points["points"][-1], strict=True))
        assert (truth["done"], truth["dead"]) == (last["done"], last["dead"])


async def test_a_stream_shows_a_job_that_runs_and_its_workers(fleet: Fleet, shop: DemoShop) -> None:
    write_spider(fleet.folder, shop.url, pace="4/s")
    await fleet.call("start", "shop.py", "--detach")
    worker = await fleet.start("work", "shop.py")
    async with web(fleet.folder, env=fleet.environment) as server:
        seen = set()
        async with asyncio.timeout(WITHIN), server.client.get(f"{server.url}/api/v1/jobs/shop-1/events") as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    seen.add(json.loads(line[6:])["job"]["done"])
                    if len(seen) >= 3:
                        break
        flight = await until(server, "/api/v1/jobs/shop-1/in-flight", lambda now: now["leases"])
        assert all(lease["url"].startswith(shop.url) for lease in flight["leases"])
        lanes = await until(server, "/api/v1/jobs/shop-1/lanes", lambda now: now["lanes"])
        lane = lanes["lanes"][0]["lane"]
        slower = await server.post("/api/v1/jobs/shop-1/lanes/pace", {"lane": lane, "rate": "1/m"})
        assert 60.0 == slower.json["pace"]["interval"]
        began = time.monotonic()
        ended = await server.stop()
        assert time.monotonic() - began < 5 and ended.code == 0
    worker.process.terminate()
    await worker.process.wait()

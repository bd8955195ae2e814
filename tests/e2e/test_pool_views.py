"""What an operator sees of proxy pools: in a run, in its summary, in `status` and `watch`, with real processes."""

import asyncio
import json
import re
import signal
from pathlib import Path
from typing import Any

from tests.e2e.fleet import Fleet, Servers
from tests.e2e.proxied import World, world
from tests.e2e.running import Ended, Running, call, start

from trotline.testing.ban_site import BanRules

GENEROUS = BanRules(rate=1000.0, burst=1000.0, ban_for=600.0)
LONG = 'kind = "datacenter"\nrest = "20m"'
RUN = ("run", "site.py", "--allow-private", "--proxies", "proxies.toml")


async def interrupted(run: Running) -> Ended:
    run.process.send_signal(signal.SIGINT)
    return await run.end()


async def troubles(folder: Path, wanted: str) -> tuple[dict[str, Any], str]:
    """The state of the job when a pool has this trouble: as JSON and as text."""
    async with asyncio.timeout(60):
        while True:
            looked = await call(folder, "status", "site", "--json")
            seen = json.loads(looked.out) if looked.code == 0 else {"pool_troubles": []}
            if any(each["trouble"] == wanted for each in seen["pool_troubles"]):
                return seen, (await call(folder, "status", "site")).out
            await asyncio.sleep(0.3)


async def ban_one_by_one(sites: World) -> None:
    """Others answer in between: these are bans of single proxies."""
    [site] = sites.sites
    await site.asked(20)
    for address in sites.addresses:
        site.banned = {*site.banned, address}
        await asyncio.sleep(0.7)


async def test_a_pool_whose_members_all_rest_is_named_in_every_view(tmp_path: Path) -> None:
    async with world(GENEROUS, pages=2000, proxies=3, first=20) as sites:
        sites.write(tmp_path, pace="10/s per proxy", pool=LONG)
        run = await start(tmp_path, *RUN)
        await ban_one_by_one(sites)
        seen, text = await troubles(tmp_path, "resting")
        ended = await interrupted(run)

    [trouble] = seen["pool_troubles"]
    host = sites.sites[0].url("").removeprefix("http://").rstrip("/")
    assert (trouble["members"], trouble["banned"], trouble["host"]) == (3, 3, host)
    sentence = rf"all 3 proxies of pool dc rest for {re.escape(host)}, first back in (19|20|21|22) min"
    assert re.search(sentence, text), text
    assert re.search(rf"\d  {sentence}", ended.out), ended.out
    assert re.search(rf"held back {sentence}", ended.out), "and in the summary"
    assert re.search(r"proxies   dc: \d+ pages, 3 bans", ended.out), ended.out


async def test_a_site_that_blocks_all_proxies_is_named(tmp_path: Path) -> None:
    async with world(GENEROUS, pages=500, proxies=8, first=30) as sites:
        sites.write(tmp_path, pace="10/s per proxy", pool=LONG)
        run = await start(tmp_path, *RUN)
        await sites.sites[0].asked(20)
        sites.sites[0].banned = set(sites.addresses)
        _, text = await troubles(tmp_path, "site blocked")
        await interrupted(run)

    assert re.search(r"127\.0\.0\.10:\d+ blocks all proxies of pool dc: probing", text), text


async def test_the_summary_names_proxies_that_are_down_by_host_and_port(tmp_path: Path) -> None:
    async with world(GENEROUS, pages=48, proxies=4, sites=2, first=40) as sites:
        sites.write(tmp_path, pace="1/s per proxy")
        dead = sites.proxies[0]
        await dead.close()
        ended = await call(tmp_path, *RUN)
        again = await call(tmp_path, "status", "site", "--json")

    assert ended.code == 0, ended
    assert re.search(r"proxies   dc: 98 pages, \d+ proxy faults?", ended.out), ended.out
    assert f"dc: down: {dead.url.removeprefix('http://')}" in ended.out, ended.out
    assert "proxy.failed" not in ended.err, "one of many that fails is no warning"
    assert json.loads(again.out)["pools"][0]["pages"] == 98


async def test_a_pool_that_no_worker_serves_is_named(both: Servers, tmp_path: Path) -> None:
    async with world(GENEROUS, pages=30, proxies=2, first=50) as sites:
        sites.write(tmp_path, pace="20/s per proxy")
        with (tmp_path / "proxies.toml").open("a") as file:
            file.write('[pools.isp]\nregion = "eu"\nproxies = ["http://127.0.0.1:9"]\n')
        fleet = Fleet(tmp_path, *both.places())
        try:
            started = await fleet.call("start", "site.py", "--detach", "--proxies", "proxies.toml")
            assert started.code == 0, started
            await fleet.start("work", "site.py", "--proxies", "proxies.toml", "--pool", "isp")
            async with asyncio.timeout(60):
                while True:
                    seen = await fleet.call("watch", "site", "--once")
                    if "no worker serves the pool dc" in seen.out:
                        break
                    await asyncio.sleep(0.3)
            assert "no worker serves the pool dc: tasks of 127.0.0.10:" in seen.out
            facts = json.loads((await fleet.call("watch", "site", "--once", "--json")).out.splitlines()[0])
            assert [worker["about"]["pools"] for worker in facts["crew"]] == [["isp"]]
        finally:
            await fleet.end()

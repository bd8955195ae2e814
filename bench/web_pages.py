"""What a page of the dashboard costs a large job: CPU of the web server and of the frontier's server, per look.

    python -m bench.web_pages [--lanes 100000] [--looks 20]

A job in a real Valkey, with one task in each lane. Each page is asked for once a second, as a browser does with one
viewer. The survey of all lanes, which the observer of a job makes now and then, whether a page is open or not, is
measured by itself, and its share of the time is added to that of each page. What Valkey uses while nobody asks it
anything is not counted. Loopback only.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time

import aiohttp

from bench.web_sse import cpu_of
from trotline.config import backends
from trotline.coordinator.job_observer import survey
from trotline.model.job import LaneRules
from trotline.model.task import Task
from trotline.rules.survey_note import JobSummary
from trotline.rules.urls import fingerprint
from trotline.testing.redis_server import WHEEL, RedisServer, redis

GOAL = 0.2
"""Seconds of CPU for one look at the overview."""
LOOK_EVERY = 2.0
"""Seconds: the soonest that an open page asks again (`SOON` in static/live.js)."""
SHARE = 0.01
"""Of a core: a page with one viewer, with the surveys."""
PAGES = {"overview": "/", "job": "/jobs/{job}", "lanes": "/jobs/{job}/lanes", "workers": "/jobs/{job}/workers"}
_BATCH = 1000
_IDLE = 20.0
"""Seconds of watching a server that has nothing to do."""


async def fill(url: str, lanes: int) -> str:
    jobs = await backends.open_jobs(url)
    job = await jobs.start("wide", LaneRules(), "v1")
    await jobs.close()
    opened = await backends.open_frontier(url, job)
    for first in range(0, lanes, _BATCH):
        hosts = [f"host-{number}.example" for number in range(first, min(lanes, first + _BATCH))]
        await opened.frontier.put(
            [
                Task(
                    url=f"https://{host}/", route="page", lane=host, fingerprint=fingerprint("page", f"https://{host}/")
                )
                for host in hosts
            ]
        )
    await opened.close()
    return job.id


async def survey_share(server: RedisServer, name: str) -> float:
    """Of a core, over the time from one survey to the next."""
    jobs = await backends.open_jobs(server.url)
    [job] = [one for one in await jobs.all() if one.id == name]
    await jobs.close()
    opened = await backends.open_frontier(server.url, job)
    began, own, redis_cpu = time.monotonic(), time.process_time(), cpu_of(server.pid)
    found = await survey(opened.console)
    own, redis_cpu = time.process_time() - own, cpu_of(server.pid) - redis_cpu
    every = JobSummary(took=time.monotonic() - began).every
    await opened.close()
    share = (own + redis_cpu) / every
    print(
        f"survey    {1000 * own:6.0f} ms of the web server, {1000 * redis_cpu:6.0f} ms of Valkey, {found.lanes:,} lanes"
        f", every {every:.0f} s: {100 * share:.2f} % of a core"
    )
    return share


async def idle_share(server: RedisServer) -> float:
    """Of a core, that Valkey uses by itself: it looks at its keys and clients ten times a second."""
    before = cpu_of(server.pid)
    await asyncio.sleep(_IDLE)
    share = (cpu_of(server.pid) - before) / _IDLE
    print(f"Valkey without any client: {100 * share:.2f} % of a core")
    return share


async def measure(server: RedisServer, looks: int, job: str, share: float, idle: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        web = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trotline.cli", "web", "--listen", "127.0.0.1:0", "--frontier", server.url,
            cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            assert web.stdout is not None
            address = (await web.stdout.readline()).decode().split()[2].rstrip("/")
            async with aiohttp.ClientSession() as client:
                await surveyed(client, f"{address}/api/v1/jobs/{job}/lanes")
                for name, path in PAGES.items():
                    await look(client, address + path.format(job=job), name, web.pid, server, looks, share, idle)
        finally:
            web.terminate()
            await web.wait()


async def surveyed(client: aiohttp.ClientSession, url: str) -> None:
    """After the server's first survey, which is measured by itself."""
    while True:
        async with client.get(url) as answer:
            if (await answer.json())["surveyed_at"]:
                return
        await asyncio.sleep(0.2)


async def view(client: aiohttp.ClientSession, stream: str) -> None:
    """The events that an open page listens to."""
    async with client.get(stream, timeout=aiohttp.ClientTimeout(total=None)) as answer:
        assert answer.status == 200, (stream, answer.status)
        async for _ in answer.content:
            pass


async def look(
    client: aiohttp.ClientSession,
    url: str,
    name: str,
    pid: int,
    server: RedisServer,
    looks: int,
    share: float,
    idle: float,
) -> None:
    """As an open page does: its stream of events, and a look each LOOK_EVERY seconds. The first look reads what is not
    known yet; it is not counted."""
    size = await get(client, url)
    base, _, page = url.partition("/jobs/")
    stream = f"{base}/api/v1/jobs/{page.partition('/')[0]}/events" if page else f"{url.rstrip('/')}/api/v1/events"
    viewer = asyncio.create_task(view(client, stream))
    began, web, redis_cpu = time.monotonic(), cpu_of(pid), cpu_of(server.pid)
    for _ in range(looks):
        await get(client, url)
        await asyncio.sleep(LOOK_EVERY)
    assert not viewer.done()
    seconds = time.monotonic() - began
    web, redis_cpu = cpu_of(pid) - web, cpu_of(server.pid) - redis_cpu - idle * seconds
    viewer.cancel()
    await asyncio.gather(viewer, return_exceptions=True)
    share += (web + redis_cpu) / seconds
    verdict = "" if name != "overview" else f"   goal {GOAL * 1000:.0f} ms: {'met' if web / looks < GOAL else 'MISSED'}"
    print(
        f"{name:9} {1000 * web / looks:6.1f} ms of the web server, {1000 * redis_cpu / looks:6.1f} ms of Valkey a look,"
        f" {size / 1024:.0f} KiB; {100 * share:.2f} % of a core with the surveys:"
        f" {'met' if share < SHARE else 'MISSED'}{verdict}"
    )


async def get(client: aiohttp.ClientSession, url: str) -> int:
    async with client.get(url) as answer:
        body = await answer.read()
        assert answer.status == 200, (url, answer.status, body[:300])
        return len(body)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.web_pages", description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, default=100_000)
    parser.add_argument("--looks", type=int, default=20)
    asked = parser.parse_args()
    os.environ.pop("TROTLINE_FRONTIER", None)
    with redis(WHEEL) as server:
        job = asyncio.run(fill(server.url, asked.lanes))
        print(f"{asked.lanes:,} lanes, one viewer: its stream of events, and a look each {LOOK_EVERY:g} s")
        share = asyncio.run(survey_share(server, job))
        idle = asyncio.run(idle_share(server))
        asyncio.run(measure(server, asked.looks, job, share, idle))


if __name__ == "__main__":
    main()

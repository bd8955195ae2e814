"""Does the advice name the true bottleneck, and is the gain of one more worker what it says?

    python -m tests.e2e.advice_rigs                 all rigs
    python -m tests.e2e.advice_rigs pace slots      some of them
    python -m tests.e2e.advice_rigs --seconds 30

Each rig is a job with one bottleneck on purpose, done by real workers. The throughput before and after one more worker
is that of the job's own counters. Rigs need free processors: on a busy machine `cpu` and `frontier` measure the others.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg
from tests.e2e.account_site import PASSWORD, AccountSite
from tests.e2e.account_soak import SPIDER as MEMBERS
from tests.e2e.advice_rig_kit import SPIDER, Result, RigJob, hosts_of, slow_site, trial
from tests.e2e.own_world import ROOT
from tests.e2e.running import call
from tests.e2e.test_fleet_namespaces import eventually_apart

from trotline.testing.postgres_server import postgres
from trotline.testing.proxy import ForwardProxy
from trotline.testing.redis_server import WHEEL, redis

Rigged = Callable[[Path, float], Awaitable[Result]]
FAST = {"pace": "1000/s", "concurrency": 500}
CHAIN = SPIDER.replace(
    """@rig.page(key="url", seeds=seeds)
def page(page: Page):""",
    """@rig.page(seeds=seeds[:1])
def first(page: Page):
    for url in seeds[1:]:
        yield step.task(url, chain="one")


@rig.page(key="url")
def step(page: Page):""",
)


def _job(folder: Path, port: int, *words: str, told: dict[str, Any], spider: str = SPIDER, **places: str) -> RigJob:
    (folder / "rig.py").write_text(spider)
    frontier = places.get("frontier") or f"sqlite:{folder}/frontier.db"
    sink = places.get("sink") or f"sqlite:{folder}/rows.db"
    defaults = {"port": port, "hosts": ["127.0.0.1"], "pages": 1000, "parse": 0.0, "spider": FAST}
    environment = {
        "RIG": json.dumps(defaults | told),
        "TROTLINE_FRONTIER": frontier,
        "TROTLINE_SINK": sink,
        "TROTLINE_ALLOW_PRIVATE": "yes",
    }
    return RigJob(folder, frontier, sink, environment, words)


async def pace(folder: Path, seconds: float) -> Result:
    """One lane of 2/s."""
    async with slow_site(0.05) as there:
        told = {"pages": 400, "spider": {"pace": "2/s"}}
        return await trial("pace", ("pace",), _job(folder, there.port, told=told), workers=1, seconds=seconds)


async def proxies(folder: Path, seconds: float) -> Result:
    """Ten proxies of 3/s each, and twenty fast lanes."""
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(slow_site(0.02, 20))
        ways = [await stack.enter_async_context(ForwardProxy(leaves_from=f"127.0.2.{n + 1}")) for n in range(10)]
        listed = ", ".join(f'"{way.url}"' for way in ways)
        (folder / "proxies.toml").write_text(f'[pools.dc]\nrate = "3/s"\nproxies = [{listed}]\n')
        (folder / "proxies.toml").chmod(0o600)
        told = {"hosts": hosts_of(20), "pages": 200, "spider": {**FAST, "pool": "dc"}}
        job = _job(folder, there.port, told=told)
        job.environment["TROTLINE_PROXIES"] = "proxies.toml"
        return await trial("proxies", ("proxies",), job, workers=2, seconds=seconds)


async def slots(folder: Path, seconds: float) -> Result:
    """Three workers with 8 slots each, and pages of 0.4 s."""
    async with slow_site(0.4, 20) as there:
        job = _job(folder, there.port, "--slots", "8", told={"hosts": hosts_of(20), "pages": 400})
        return await trial("slots", ("slots",), job, workers=3, seconds=seconds)


async def cpu(folder: Path, seconds: float) -> Result:
    """20 ms of processor time per page, and many slots."""
    async with slow_site(0.05, 20) as there:
        told = {"hosts": hosts_of(20), "pages": 500, "parse": 0.02}
        job = _job(folder, there.port, "--slots", "64", told=told)
        return await trial("cpu", ("cpu",), job, workers=1, seconds=seconds)


_SERIAL = """
CREATE FUNCTION {schema}.slowly() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1);
    PERFORM pg_sleep(0.01);
    RETURN new;
END $$;
CREATE TRIGGER slowly BEFORE INSERT ON {schema}.records FOR EACH ROW EXECUTE FUNCTION {schema}.slowly();
"""


async def database(folder: Path, seconds: float) -> Result:
    """A database that stores one record at a time, in 10 ms."""
    with postgres() as rows:
        sink = f"{rows.url}?schema=rig"
        upgraded = await call(folder, "db", "upgrade", env={"TROTLINE_SINK": sink})
        assert upgraded.code == 0, upgraded
        connection = await asyncpg.connect(rows.url)
        await connection.execute(_SERIAL.format(schema="rig"))
        await connection.close()
        async with slow_site(0.02, 20) as there:
            told = {"hosts": hosts_of(20), "pages": 1500}
            job = _job(folder, there.port, told=told, sink=sink)
            return await trial("database", ("database",), job, workers=2, seconds=1.5 * seconds, warm=8.0)


_BURST = 0.002
"""Seconds of processor time."""


@contextmanager
def throttled(pid: int, share: float) -> Iterator[None]:
    """The process gets this share of a processor, as in a small container: it is stopped while it has had more."""
    over = threading.Event()

    def used() -> float:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9

    def throttle() -> None:
        at, before, left, runs = time.monotonic(), used(), 0.0, True
        while not over.wait(0.002):
            now, spent = time.monotonic(), used()
            # What was not used is not saved up for later.
            left = min(_BURST, left + share * (now - at)) - (spent - before)
            at, before, may_run = now, spent, left > 0
            if may_run != runs:
                os.kill(pid, signal.SIGCONT if may_run else signal.SIGSTOP)
                runs = may_run
        os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=throttle)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


async def frontier(folder: Path, seconds: float) -> Result:
    """A Redis that gets little of a processor, and tiny pages."""
    with redis(WHEEL) as queue:
        async with slow_site(0.0, 20) as there:
            told = {"hosts": hosts_of(20), "pages": 2500}
            job = _job(folder, there.port, "--slots", "16", told=told, frontier=queue.url)
            job.environment["TROTLINE_VISITS"] = "no"
            with throttled(queue.pid, 0.015):
                # The start of a worker takes the server seconds.
                return await trial("frontier", ("frontier",), job, workers=2, seconds=seconds, warm=12.0)


async def session(folder: Path, seconds: float) -> Result:
    """One account."""
    async with AccountSite(slow=0.2, pages_of_a_session=10_000) as there:
        (folder / "members.py").write_text(MEMBERS)
        login = 'a0 = { user = "a0@shop.test", password = "env:P_a0" }'
        (folder / "proxies.toml").write_text(
            f'[accounts.members]\nproxies = "direct"\n[accounts.members.logins]\n{login}\n'
        )
        job = _job(folder, 0, told={})
        job.spider = "members.py"
        job.environment |= {
            "MEMBERS": there.base,
            "PAGES": "1000",
            "P_a0": PASSWORD.format("a0"),
            "TROTLINE_PROXIES": "proxies.toml",
        }
        return await trial("session", ("sessions",), job, workers=1, seconds=seconds)


async def chain(folder: Path, seconds: float) -> Result:
    """One chain of pages of 0.2 s."""
    async with slow_site(0.2) as there:
        job = _job(folder, there.port, told={"pages": 1000}, spider=CHAIN)
        return await trial("chain", ("chains",), job, workers=1, seconds=seconds)


async def network(folder: Path, seconds: float) -> Result:
    """A link of 1 Mbit/s, in network namespaces of its own. Needs root."""
    process = await asyncio.create_subprocess_exec(
        "unshare", "--net", sys.executable, "-m", "tests.e2e.advice_rigs", "--inside", str(folder), str(seconds),
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    import pickle

    result: Result = pickle.loads(bytes.fromhex(out.decode().strip()))  # noqa: S301 - of our own child
    return result


def link() -> tuple["subprocess.Popen[bytes]", list[str]]:
    """A machine behind a link of 1 Mbit/s, and what a command begins with that runs there."""
    machine = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
    eventually_apart(machine.pid)
    there = ["nsenter", f"--target={machine.pid}", "--net"]
    for line in (
        "ip link set lo up",
        f"ip link add way type veth peer name eth0 netns {machine.pid}",
        "ip addr add 10.77.0.1/24 dev way",
        "ip link set way up",
        "tc qdisc add dev way root tbf rate 1mbit burst 16kb latency 500ms",
    ):
        subprocess.run(line.split(), check=True)
    for line in ("ip link set lo up", "ip addr add 10.77.0.2/24 dev eth0", "ip link set eth0 up"):
        subprocess.run([*there, *line.split()], check=True)
    return machine, there


async def _inside(folder: Path, seconds: float) -> Result:
    """The site is here, the workers are behind the link."""
    machine, there = link()
    try:
        body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 8000\r\n\r\n" + b"x" * 8000
        server = await asyncio.start_server(_always(body), "10.77.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        told = {"hosts": ["10.77.0.1"], "pages": 4000}
        job = _job(folder, port, "--slots", "8", "--bandwidth", "1Mbit", told=told)
        job.before = there
        return await trial("network", ("network",), job, workers=1, seconds=seconds)
    finally:
        machine.kill()
        machine.communicate()


def _always(answer: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    return serve


RIGS: dict[str, Rigged] = {
    "pace": pace,
    "proxies": proxies,
    "slots": slots,
    "cpu": cpu,
    "database": database,
    "frontier": frontier,
    "network": network,
    "session": session,
    "chain": chain,
}


async def main(names: list[str], seconds: float, *, verbose: bool = False) -> int:
    wrong = 0
    for name in names:
        with TemporaryDirectory(prefix="trotline-rig-") as folder:
            result = await RIGS[name](Path(folder), seconds)
        print(result, flush=True)
        if verbose:
            for limit in result.advice.limits:
                print("          ", limit, flush=True)
        wrong += bool(result.trouble)
    return wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        import pickle

        print(pickle.dumps(asyncio.run(_inside(Path(sys.argv[2]), float(sys.argv[3])))).hex())
        sys.exit()
    parser = argparse.ArgumentParser()
    parser.add_argument("rigs", nargs="*", default=list(RIGS))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--verbose", action="store_true", help="all limits")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.rigs, given.seconds, verbose=given.verbose)))

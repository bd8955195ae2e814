"""Two workers on machines of their own, as far as the network knows. One is cut off for longer than its lease.

Three network namespaces: the servers and the site are in one, each worker is in another, with an address of its own and
one link. Made with `unshare`, they have no names, and nothing is left of them when their processes end.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.fleet_hub import HUB
from tests.e2e.own_world import ROOT
from tests.e2e.running import WITHIN, Running

from trotline.testing.servers import need

pytestmark = [pytest.mark.xdist_group("world"), pytest.mark.timeout(200)]

MODULE = {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}


class Land:
    """The namespace with the servers, and the ways that lead to it."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._machines: list[subprocess.Popen[bytes]] = []
        self._workers: list[Running] = []

    async def ask(self, question: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{question}\n".encode())
        return await self.hear()

    async def hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), WITHIN)
        assert line, "the land has ended"
        return json.loads(line)

    async def until(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(WITHIN):
            while True:
                if fits(seen := await self.ask("progress")):
                    return seen
                await asyncio.sleep(0.1)

    def machine(self) -> int:
        """Another machine, with its own address and a link; its number."""
        machine = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        self._machines.append(machine)
        number = len(self._machines)
        eventually_apart(machine.pid)
        link, net = f"way{number}", f"10.77.{number}"
        self._here(f"ip link add {link} type veth peer name eth0 netns {machine.pid}")
        self._here(f"ip addr add {net}.1/24 dev {link}")
        self._here(f"ip link set {link} up")
        for line in (
            "ip link set lo up", f"ip addr add {net}.2/24 dev eth0", "ip link set eth0 up",
            f"ip route add {HUB}/32 via {net}.1",
        ):  # fmt: skip
            inside(machine.pid, line)
        return number

    def cut(self, number: int) -> None:
        self._here(f"ip link set way{number} down")

    def heal(self, number: int) -> None:
        self._here(f"ip link set way{number} up")

    async def worker(self, number: int) -> Running:
        environment = await self.ask("environment")
        process = await asyncio.create_subprocess_exec(
            "nsenter", f"--target={self._machines[number - 1].pid}", "--net", f"--wd={self._folder}",
            sys.executable, "-m", "trotline.cli", "work", "crawl.py", "--until-finished", "--quiet",
            env={**os.environ, **MODULE, **environment}, start_new_session=True, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self._workers.append(Running(process))
        return self._workers[-1]

    def close(self) -> None:
        for worker in self._workers:
            if worker.process.returncode is None:
                worker.signal_all(9)
        for machine in self._machines:
            machine.kill()
            machine.communicate()

    def _here(self, line: str) -> None:
        inside(self._process.pid, line)


def inside(pid: int, line: str) -> None:
    subprocess.run(["nsenter", f"--target={pid}", "--net", *line.split()], check=True)


def eventually_apart(pid: int) -> None:
    """When the process is in its own namespace."""
    ours = Path("/proc/self/ns/net").readlink()
    while Path(f"/proc/{pid}/ns/net").readlink() == ours:
        os.sched_yield()


@asynccontextmanager
async def land(folder: Path) -> AsyncIterator[Land]:
    process = await asyncio.create_subprocess_exec(
        "unshare", "--net", sys.executable, "-m", "tests.e2e.fleet_hub", str(folder),
        cwd=ROOT, env={**os.environ, **MODULE}, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    made = Land(process, folder)
    try:
        assert await made.hear() == {"ready": True}
        yield made
    finally:
        made.close()
        assert process.stdin is not None
        # It stops its servers by itself.
        process.stdin.close()
        await asyncio.wait_for(process.wait(), WITHIN)


@pytest.fixture(autouse=True)
def may_make_namespaces() -> None:
    need("ip", "iproute2")
    if os.geteuid() != 0:
        pytest.skip("a network namespace of one's own needs root")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody make a network namespace")


async def test_a_worker_that_was_cut_off_and_comes_back_loses_nothing_and_doubles_nothing(tmp_path: Path):
    async with land(tmp_path) as where:
        workers = [await where.worker(where.machine()) for _ in range(2)]
        # Each has done some pages, so it has others in hand by now.
        both = await where.until(lambda seen: len(seen["did"]) == 2 and min(seen["did"].values()) > 10)
        [lost] = [name for name in both["crew"] if name.split("-")[-3] == str(workers[0].process.pid)]
        where.cut(1)
        # Others get what it held; until then it is on their list.
        seen = await where.until(lambda seen: lost not in seen["crew"])
        assert seen["rescued"] > 0
        assert not seen["finished"]
        where.heal(1)
        back = await where.until(lambda seen: seen["crew"].get(lost, 0) > 0 or seen["finished"])
        for worker in workers:
            assert (await worker.end()).code == 0
        books = await where.ask("books")

    print(f"cut off: {seen['rescued']} rescued, back with {back['left']} left; {books}")
    assert not books["trouble"]
    assert books["refused"] > 0, "what it had in hand when it was cut off was somebody else's by then"
    assert len([done for done in books["by"].values() if done > 50]) == 2, "both did their share"
    assert not back["finished"], "it takes part again"

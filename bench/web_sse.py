"""What 200 open dashboards cost a crawl: pages per second beside the same crawl alone, and CPU of the web server.

    python -m bench.web_sse [--clients 200] [--pages 4000] [--rounds 3]

Half of the clients read their stream of server-sent events, half never do (a small receive buffer, a stopped reader).
Each round crawls the demo shop twice, in turn: alone, and with `trotline web` and the clients at the same job. On a
shared machine the rates of two equal crawls differ by more than the cost that is looked for; so the CPU time of the
server is measured besides: a crawl that is not slowed down by others uses a core. Loopback only.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import secrets
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

GOAL = 0.02
SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="100000/s", concurrency=64, robots=False)

@shop.page(key="sku", seeds=["{shop}/p/T%d" % number for number in range(1, {pages} + 1)])
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get() or page.url, "title": page.css("h1::text").get()}}
"""


@dataclass
class Crawl:
    pages: int
    seconds: float
    cpu: float
    """Of the run with its child."""
    web_cpu: float = 0.0
    events: int = 0
    """That reading clients got."""

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


async def trotline(folder: Path, *words: str, **options: object) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "trotline.cli", *words, cwd=folder, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, **options,
    )  # fmt: skip


def cpu_of(pid: int) -> float:
    """Seconds of a process and of those of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def crawl(folder: Path) -> Crawl:
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    run = await trotline(folder, "run", "shop.py", "--fresh", "--allow-private", "--json", "--slots", "64")
    out, _ = await run.communicate()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads(out.splitlines()[-1])
    assert summary["done"], summary
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return Crawl(summary["done"], time.monotonic() - began, cpu)


class Watchers:
    """Clients of `/api/v1/events`, and of the newest job as soon as there is one."""

    def __init__(self, port: int, token: str, number: int) -> None:
        self.port, self.token, self.number = port, token, number
        self.events = 0
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        self._tasks = [asyncio.create_task(self._watch(reads=place % 2 == 0)) for place in range(self.number)]

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch(self, *, reads: bool) -> None:
        while True:
            sock = socket.socket()
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16 if reads else 2048)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
            reader, writer = await asyncio.open_connection(sock=sock, limit=1 << 16)
            writer.write(
                f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n\r\n".encode()
            )
            try:
                await self._read(reader, reads=reads)
            finally:
                writer.transport.abort()

    async def _read(self, reader: asyncio.StreamReader, *, reads: bool) -> None:
        if not reads:
            # Without a read the stream's limit stops the transport, then the kernel's buffers fill.
            await asyncio.sleep(3600)
        while data := await reader.read(1 << 16):
            self.events += data.count(b"event: snapshot")


async def watched(folder: Path, clients: int) -> Crawl:
    token = secrets.token_urlsafe(32)
    server = await trotline(
        folder, "web", "--listen", "127.0.0.1:0", "--token-view", "env:BENCH_TOKEN",
        env={**os.environ, "BENCH_TOKEN": token},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        found = re.search(rb":(\d+)/", await server.stdout.readline())
        assert found is not None
        watchers = Watchers(int(found[1]), token, clients)
        watchers.begin()
        await asyncio.sleep(2)
        before, began = cpu_of(server.pid), time.monotonic()
        result = await crawl(folder)
        result.web_cpu = (cpu_of(server.pid) - before) * result.seconds / (time.monotonic() - began)
        result.events = watchers.events
        await watchers.end()
        return result
    finally:
        server.terminate()
        await server.wait()


async def bench(clients: int, pages: int, rounds: int) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shop = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trotline.testing.shop", "--port", "0", "--products", str(pages),
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            assert shop.stdout is not None
            address = re.search(rb"http://[^\s/]+", await shop.stdout.readline())
            assert address is not None
            (folder / "shop.py").write_text(SPIDER.format(shop=address[0].decode(), pages=pages))
            await crawl(folder)  # Warm: imports, the shop's pages.
            alone, beside = [], []
            for number in range(rounds):
                for with_clients in (number % 2 == 0, number % 2 == 1):
                    found = await (watched(folder, clients) if with_clients else crawl(folder))
                    (beside if with_clients else alone).append(found)
        finally:
            shop.terminate()
            await shop.wait()
    return report(clients, alone, beside)


def report(clients: int, alone: list[Crawl], beside: list[Crawl]) -> int:
    rates = [one.rate for one in alone], [one.rate for one in beside]
    share = median(one.web_cpu / one.cpu for one in beside)
    of_a_core = median(one.web_cpu / one.seconds for one in beside)
    events = median(one.events for one in beside)
    print(f"{'':24}{'pages/s':>10}{'spread':>16}")
    for label, found in (("alone", rates[0]), (f"{clients} clients", rates[1])):
        print(f"{label:24}{median(found):>10.0f}{min(found):>10.0f} to {max(found):.0f}")
    print(f"web server: {of_a_core:.1%} of a core, {share:.1%} of the CPU of the crawl; {events:.0f} events were read")
    slower = 1 - median(rates[1]) / median(rates[0])
    print(f"difference of the medians: {slower:+.1%}   goal: below {GOAL:.0%} of a core")
    return 0 if of_a_core < GOAL else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    return asyncio.run(bench(asked.clients, asked.pages, asked.rounds))


if __name__ == "__main__":
    sys.exit(main())

"""A site that bans by address, and proxies that leave from addresses of their own, in processes of their own.

    python -m bench.ban_world site '{"rate": 1.0}' LOG    a BanSite; its log as JSON lines when it is stopped
    python -m bench.ban_world proxies FIRST COUNT LOG     ForwardProxies at addresses of 127.0.0.0/8

Each prints one line when it is ready: its URLs. SIGTERM ends it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.contenders import HERE

if TYPE_CHECKING:
    from trotline.testing.ban_site import Request

FIRST_HOST = "127.0.5.1"
"""Of the site. It is not 127.0.0.1, from which other programs go out."""
TEXT = "Lorem ipsum dolor sit amet, consectetur adipiscing elit. " * 20
STOP_WITHIN = 20.0


def address(number: int) -> str:
    """Of the proxy with this number."""
    return f"127.0.{20 + number // 250}.{number % 250 + 1}"


def page(path: str) -> bytes:
    name = path.rpartition("/")[2]
    text = f'<h1>Product {name}</h1><p class="price">{len(name)}.99</p><p>{TEXT}</p>'
    return f"<!doctype html><title>{name}</title>{text}".encode()


@dataclass(frozen=True)
class SiteLog:
    """What the site saw. Moments are of the monotonic clock, which all processes of the machine share."""

    requests: list[tuple[float, str, str, int]]
    bans: int
    connections: int

    def statuses(self, start: float, end: float) -> Counter[int]:
        return Counter(status for at, _, _, status in self.requests if start <= at < end)

    def good(self, start: float, end: float) -> int:
        """Different pages that were answered."""
        return len({path for at, _, path, status in self.requests if start <= at < end and status == 200})


@dataclass
class World:
    site: str
    proxies: list[str]
    folder: Path
    stopped: bool = False
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def stop(self) -> None:
        if self.stopped:
            return
        self.stopped = True
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait(STOP_WITHIN)

    def log(self) -> SiteLog:
        """Of the site, when all is stopped."""
        self.stop()
        kept = json.loads((self.folder / "site.json").read_text())
        return SiteLog([tuple(row) for row in kept["log"]], kept["bans"], kept["connections"])

    def connections(self) -> int:
        """To all proxies together."""
        self.stop()
        return sum(json.loads(file.read_text())["connections"] for file in self.folder.glob("proxies-*.json"))


@contextmanager
def world(folder: Path, rules: Any, proxies: int, processes: int = 1) -> Iterator[World]:
    """`rules`: BanRules of the site. The proxies are divided over so many processes."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        found = World("", [], folder)
        stack.callback(found.stop)
        words = ["site", json.dumps(asdict(rules)), str(folder / "site.json")]
        [found.site] = _start(found, words)
        share = -(-proxies // processes)
        for first in range(0, proxies, share):
            count = min(share, proxies - first)
            log = folder / f"proxies-{first}.json"
            found.proxies += _start(found, ["proxies", str(first), str(count), str(log)])
        yield found


def _start(found: World, words: list[str]) -> list[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.ban_world", *words],
        stdout=subprocess.PIPE, text=True, cwd=HERE.parent, start_new_session=True,
    )  # fmt: skip
    found.processes.append(process)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"bench.ban_world {words[0]} did not start")
    return list(json.loads(line))


async def serve_site(rules: str, log: str) -> None:
    from trotline.testing.ban_site import BanRules, BanSite

    async with BanSite(BanRules(**json.loads(rules)), page=page, host=FIRST_HOST) as site:
        print(json.dumps([site.url("")]), flush=True)
        await _stopped()
        kept = {"log": site.log, "bans": _bans(site.log, site.rules.ban_after), "connections": site.connections}
    _write(log, kept)


async def serve_proxies(first: int, count: int, log: str) -> None:
    from trotline.testing.proxy import ForwardProxy

    async with AsyncExitStack() as stack:
        addresses = [address(number) for number in range(first, first + count)]
        # Each listens at the address that it leaves from: some programs count proxies by their host.
        proxies = [await stack.enter_async_context(ForwardProxy(host=each, leaves_from=each)) for each in addresses]
        print(json.dumps([proxy.url for proxy in proxies]), flush=True)
        await _stopped()
    _write(log, {"connections": sum(proxy.connections for proxy in proxies)})


def _bans(log: list[Request], ban_after: int) -> int:
    """Those that have ended too: each begins with so many 429s to an address."""
    limited = Counter(request.address for request in log if request.status == 429)
    return sum(times // ban_after for times in limited.values()) if ban_after else 0


def _write(log: str, kept: dict[str, Any]) -> None:
    Path(log).write_text(json.dumps(kept))


async def _stopped() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


def main() -> None:
    import uvloop

    what, *words = sys.argv[1:]
    if what == "site":
        uvloop.run(serve_site(*words))
    else:
        uvloop.run(serve_proxies(int(words[0]), int(words[1]), words[2]))


if __name__ == "__main__":
    main()

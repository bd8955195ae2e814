"""What the browser-like client costs: CPU per page beside the default client, over TLS, taking turns.

    python -m bench.browser_cost [--pages 3000] [--rounds 5] [--at-once 16]

The fetchers alone, on the event loop of workers: a page of 30 KB from nginx on loopback over kept connections. The CPU
is that of this process with all its threads; nginx is another one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import uvloop

from bench.__main__ import describe, machine
from bench.report import table
from trotline.adapters.browser_like.fetcher import BrowserWays
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Answer
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.testing.servers import listen, need
from trotline.testing.torture.certificates import Authority

SIZE = 30_000
NGINX = """
daemon off; {user} worker_processes 1; pid {folder}/pid; error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html; }} access_log off; keepalive_requests 1000000000;
    client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    ssl_certificate {authority}/good.pem; ssl_certificate_key {authority}/good.key;
    server {{ listen 127.0.0.1:{one} ssl; root {folder}; }}
    server {{ listen 127.0.0.1:{two} ssl http2; root {folder}; }}
}}
"""
PLAIN, BROWSER_1, BROWSER_2 = "default client, HTTP/1.1", "browser-like, HTTP/1.1", "browser-like, HTTP/2"


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, int]]:
    """The ports for HTTP/1.1 and for HTTP/2."""
    sockets = [listen(["127.0.0.1"])[0] for _ in range(2)]
    one, two = (each.getsockname()[1] for each in sockets)
    for each in sockets:
        each.close()
    (folder / "page.html").write_bytes(b"<p>" + b"x" * (SIZE - 7) + b"</p>")
    user = "user root;" if os.getuid() == 0 else ""
    configuration = folder / "nginx.conf"
    configuration.write_text(NGINX.format(user=user, folder=folder, authority=folder, one=one, two=two))
    binary = need("nginx", "nginx-light")
    with subprocess.Popen([binary, "-p", folder, "-e", folder / "error.log", "-c", configuration]) as server:
        try:
            yield one, two
        finally:
            server.terminate()


async def cost(fetcher: HttpFetcher | BrowserWays, port: int, pages: int, at_once: int) -> float:
    """CPU milliseconds per page."""
    task = Task(url=f"https://localhost:{port}/page.html", route="r")

    async def some(count: int) -> None:
        for _ in range(count):
            answer = await fetcher.fetch(task)
            if not isinstance(answer, Answer) or len(answer.body) != SIZE:
                raise SystemExit(f"no page: {answer!r:.300}")

    await asyncio.gather(*(some(5) for _ in range(at_once)))
    started = time.process_time()
    await asyncio.gather(*(some(pages // at_once) for _ in range(at_once)))
    return (time.process_time() - started) * 1000 / (pages // at_once * at_once)


async def compared(authority: Authority, ports: tuple[int, int], options: argparse.Namespace) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {PLAIN: [], BROWSER_1: [], BROWSER_2: []}
    plain = HttpFetcher(Limits(), user_agent="bench/1", spider="bench", allow_private=True, tls=authority.trust())
    browser = BrowserWays(plain, {})
    try:
        for _ in range(options.rounds):
            found[PLAIN].append(await cost(plain, ports[0], options.pages, options.at_once))
            found[BROWSER_1].append(await cost(browser, ports[0], options.pages, options.at_once))
            found[BROWSER_2].append(await cost(browser, ports[1], options.pages, options.at_once))
    finally:
        await browser.close()
        await plain.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.browser_cost", description=__doc__)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=16)
    options = parser.parse_args()
    print(describe(machine()), flush=True)
    with TemporaryDirectory(prefix="trotline-bench-") as name:
        authority = Authority(Path(name))
        authority.server()
        with served(Path(name)) as ports, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            time.sleep(0.5)
            found = runner.run(compared(authority, ports, options))
    rows = [[name, f"{median(all_):.3f}", f"{min(all_):.3f} to {max(all_):.3f}"] for name, all_ in found.items()]
    print(table(["", "CPU ms/page", "rounds"], rows))
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

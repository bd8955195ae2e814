"""`make fleet`: a whole fleet on this machine. A real Valkey and a real PostgreSQL, three workers, a job, and its rows.

With FRONTIER=postgresql (`--frontier postgresql`) tasks and rows are in one PostgreSQL, and there is no other server.

The servers come out of pip wheels, run on free loopback ports with folders of their own, and are gone at the end.
The spider is the README's catalog, unchanged: what makes it a fleet is two URLs.
"""

import argparse
import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from trotline.testing.demo import (
    CANNOT_START,
    INTERRUPTED,
    SPIDER,
    DemoFailed,
    Rows,
    compare,
    open_shop,
    short,
    show,
    stop,
    truth_of,
)
from trotline.testing.postgres_server import WHEEL, postgres
from trotline.testing.redis_server import redis
from trotline.testing.shop import DemoShop

WORKERS = 3
REDIS, POSTGRESQL = "redis", "postgresql"
_END_WITHIN = 30


class Servers(NamedTuple):
    """The URLs of the frontier and the sink, and what is said of them."""

    frontier: str
    sink: str
    about: str


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return _fleet(asked.folder, asked.products, asked.frontier)
    except DemoFailed as failed:
        print(f"fleet: {failed}", file=sys.stderr)
        return CANNOT_START
    except KeyboardInterrupt:
        print("fleet: stopped", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trotline.testing.fleet_demo", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("fleet-out"), help="for the workers' logs")
    parser.add_argument("--products", type=int, default=240, help="how many products the shop has (default 240)")
    parser.add_argument(
        "--frontier", choices=(REDIS, POSTGRESQL), default=REDIS, help="where the tasks are (default redis: a Valkey)"
    )
    return parser


def _servers(frontier: str, stack: ExitStack) -> Servers:
    database = stack.enter_context(postgres(WHEEL))
    if frontier == POSTGRESQL:
        about = f"PostgreSQL is up on port {database.port} for tasks and rows; there is no other server."
        return Servers(database.url, database.url, about)
    queue = stack.enter_context(redis(WHEEL))
    about = f"Valkey is up on port {queue.port} for tasks, PostgreSQL on port {database.port} for rows."
    return Servers(queue.url, database.url, about)


def _fleet(folder: Path, products: int, frontier: str) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        servers, shop = _servers(frontier, stack), stack.enter_context(open_shop(products))
        places = {"TROTLINE_FRONTIER": servers.frontier, "TROTLINE_SINK": servers.sink, "DEMO_SHOP": shop}
        print(f"{servers.about} The demo shop is at {shop}.")
        print("Every command below finds the two places in TROTLINE_FRONTIER and TROTLINE_SINK.\n", flush=True)
        dashboard = stack.enter_context(_dashboard(places, folder))
        with _workers(places, folder):
            code = _call(places, "start", short(SPIDER))
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if code:
            raise DemoFailed(f"the job ended with exit code {code}; its last lines above say why")
        found = asyncio.run(_stored(servers.sink))
        show(found)
        print()
        _call(places, "jobs")
        print()
        _call(places, "trace", f"{shop}{DemoShop(products).truth[0].path}", "--spider", short(SPIDER))
        logs = f"  logs      {short(folder)}/worker-*.log"
        code = compare(found, truth_of(products), logs, more="docs/learn/from-laptop-to-fleet.md")
        if sys.stdin.isatty() and sys.stdout.isatty():
            input(f"\nThe dashboard stays at {dashboard} until you press Enter. ")
        return code


@contextlib.contextmanager
def _dashboard(places: dict[str, str], folder: Path) -> Iterator[str]:
    """Its address."""
    words = ["web", short(SPIDER), "--listen", "127.0.0.1:0"]
    print(f"$ trotline {shlex.join(words)}      (in the background)", flush=True)
    with (folder / "web.log").open("w") as log:
        process = _start(places, words, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        try:
            assert process.stdout is not None
            said = process.stdout.readline().decode()
            if not said.startswith("listening on "):
                raise DemoFailed(f"the dashboard did not start; {short(folder)}/web.log says why")
            address = said.split()[2]
            print(f"The dashboard is at {address}\n", flush=True)
            yield address
        finally:
            stop(process)
            if process.stdout is not None:
                process.stdout.close()


@contextlib.contextmanager
def _workers(places: dict[str, str], folder: Path) -> Iterator[None]:
    """Three of them, each with a log of its own; they end with the job."""
    words = ["work", short(SPIDER), "--allow-private", "--until-finished"]
    print(f"$ trotline {shlex.join(words)}      ({WORKERS} times, in the background)", flush=True)
    with contextlib.ExitStack() as stack:
        for number in range(1, WORKERS + 1):
            log = stack.enter_context((folder / f"worker-{number}.log").open("w"))
            worker = _start(places, words, stdout=log, stderr=log, start_new_session=True)
            stack.callback(stop, worker)
        yield


def _call(places: dict[str, str], *words: str) -> int:
    print(f"$ trotline {shlex.join(words)}", flush=True)
    running = _start(places, words)
    try:
        return running.wait()
    except KeyboardInterrupt:
        running.wait(_END_WITHIN)
        raise
    finally:
        stop(running)


def _start(places: dict[str, str], words: Sequence[str], **options: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "trotline.cli", *words]
    return subprocess.Popen(command, env={**os.environ, **places}, **options)  # type: ignore[call-overload,no-any-return]  # noqa: S603


async def _stored(sink: str) -> Rows:
    import asyncpg

    connection = await asyncpg.connect(sink)
    try:
        rows = await connection.fetch(
            "SELECT data->>'sku', data->>'title', data->>'price' FROM records WHERE kind = 'product'"
        )
    finally:
        await connection.close()
    return {sku: (title, price) for sku, title, price in rows}


if __name__ == "__main__":
    sys.exit(main())

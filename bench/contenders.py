"""Who is measured: how each one is started, and how its items are read back."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE / ".work"
Items = Iterator[dict[str, str]]


def json_lines(out: Path) -> Items:
    with out.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def sqlite_records(out: Path) -> Items:
    """The records of a Trotline SQLite sink."""
    with sqlite3.connect(f"file:{out}?mode=ro", uri=True) as database:
        for (data,) in database.execute("SELECT data FROM records"):
            yield json.loads(data)


def postgres_records(_out: Path) -> Items:
    """The records of a Trotline PostgreSQL sink."""
    for data in asyncio.run(_fetch("SELECT data FROM records")):
        yield json.loads(data)


async def _fetch(query: str) -> list[str]:
    import asyncpg

    connection = await asyncpg.connect(os.environ["BENCH_POSTGRES"])
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()


@dataclass(frozen=True)
class Contender:
    """A crawler of the product site. Its command finds the first page in BENCH_SEED and writes to BENCH_OUT."""

    name: str
    title: str
    command: Callable[[Path], list[str]]
    items: Callable[[Path], Items] = json_lines
    out: str = "items.jsonl"
    environment: Mapping[str, str] = field(default_factory=dict)
    requirements: str | None = None
    services: tuple[str, ...] = ()
    """Servers that it needs: their URLs are in BENCH_REDIS and BENCH_POSTGRES."""


def peer(venv: str, *arguments: str) -> Callable[[Path], list[str]]:
    program, *rest = arguments
    return lambda _out: [str(WORK / "venvs" / venv / "bin" / program), *rest]


def trotline(processes: int = 1, slots: int = 64) -> Callable[[Path], list[str]]:
    """Trotline through its command line, every promise on. Its frontier lies beside its rows: each run is new."""

    def command(out: Path) -> list[str]:
        places = ["--frontier", f"sqlite:{out.with_name('frontier.db')}", "--sink", f"sqlite:{out}"]
        load = ["--processes", str(processes), "--slots", str(slots // processes)]
        program = str(Path(sys.executable).with_name("trotline"))
        return [program, "run", str(HERE / "trotline_product.py"), *places, *load, "--allow-private", "--quiet"]

    return command


def fleet(workers: int) -> Callable[[Path], list[str]]:
    """Trotline on Redis and PostgreSQL: one worker with one child, or two such workers."""

    def command(_out: Path) -> list[str]:
        spider = str(HERE / "trotline_product.py")
        places = ["--frontier", "env:BENCH_REDIS", "--sink", "env:BENCH_POSTGRES"]
        if workers > 1:
            return [sys.executable, str(HERE / "two_workers.py"), spider, *places]
        program = str(Path(sys.executable).with_name("trotline"))
        return [program, "run", spider, *places, "--slots", "64", "--allow-private", "--quiet"]

    return command


def tuned(level: str, title: str, handler: str = "twisted") -> Contender:
    return Contender(
        f"scrapy-{level}" + ("" if handler == "twisted" else f"-{handler}"),
        title,
        peer("scrapy", "python", str(HERE / "peers" / "scrapy_tuned.py")),
        environment={"BENCH_LEVEL": level, "BENCH_HANDLER": handler},
        requirements="requirements-scrapy.txt",
    )


TROTLINE = Contender("trotline", "Trotline, one child", trotline(), sqlite_records, "items.db")
BARE = Contender(
    "bare", "bare loop: aiohttp + selectolax, a set, a file", lambda _out: [sys.executable, str(HERE / "bare.py")]
)
SCRAPY_TUNED = tuned("tuned", "Scrapy, expert-tuned")
SCRAPY_LEAN = tuned("lean", "Scrapy, expert-tuned and lean: nothing idle runs")
SCRAPY_STRIPPED = tuned("stripped", "Scrapy, stripped: no robots, redirects, compression")
SCRAPY_STRIPPED_AIOHTTP = tuned("stripped", "Scrapy, stripped, experimental aiohttp handler", "aiohttp")
SCRAPY_PLAIN = Contender(
    "scrapy",
    "Scrapy, ordinary spider",
    peer("scrapy", "scrapy", "runspider", str(HERE / "peers" / "scrapy_plain.py")),
    requirements="requirements-scrapy.txt",
)
CRAWLEE = Contender(
    "crawlee",
    "crawlee-python, Parsel, memory storage",
    peer("crawlee", "python", str(HERE / "peers" / "crawlee_memory.py")),
    requirements="requirements-crawlee.txt",
)
FLEET = Contender(
    "trotline-fleet",
    "Trotline, one child on Redis + PostgreSQL",
    fleet(1),
    postgres_records,
    services=("redis", "postgres"),
)
FLEET_OF_TWO = replace(
    FLEET, name="trotline-fleet-2", title="Trotline, two workers on Redis + PostgreSQL", command=fleet(2)
)
SCRAPY_REDIS = Contender(
    "scrapy-redis",
    "scrapy-redis, ordinary spider",
    peer("scrapy-redis", "scrapy", "runspider", str(HERE / "peers" / "scrapy_redis_product.py")),
    requirements="requirements-scrapy-redis.txt",
    services=("redis",),
)
CELERY = Contender(
    "celery",
    "Celery + requests, one process",
    peer("celery", "python", str(HERE / "peers" / "celery_requests.py")),
    requirements="requirements-celery.txt",
    services=("redis",),
)
SNIPPET = Contender(
    "snippet",
    "the snippet of the Redis guides",
    peer("seed", "python", str(HERE / "peers" / "seed_snippet.py")),
    requirements="requirements-seed.txt",
    services=("redis",),
)
FLEETS = (FLEET, FLEET_OF_TWO, SCRAPY_REDIS, CELERY, SNIPPET)
SCRAPYS = (SCRAPY_TUNED, SCRAPY_LEAN, SCRAPY_STRIPPED, SCRAPY_STRIPPED_AIOHTTP, SCRAPY_PLAIN)
CONTENDERS = {each.name: each for each in (TROTLINE, BARE, *SCRAPYS, CRAWLEE, *FLEETS)}


def prepare(contenders: list[Contender]) -> list[Contender]:
    """Make the virtual environments of the peers: one per peer, so that no one's pins disturb another's.

    Those that are ready come back; one that cannot be installed is reported, and the others are measured.
    """
    broken = {name for name in sorted({each.requirements or "" for each in contenders}) if name and not installed(name)}
    return [each for each in contenders if each.requirements not in broken]


def installed(requirements: str) -> bool:
    """Make the environment of a peer, if it is not there. False: it could not be made."""
    venv = WORK / "venvs" / requirements.removeprefix("requirements-").removesuffix(".txt")
    wanted, mark = (HERE / requirements).read_text(), venv / ".installed"
    if mark.exists() and mark.read_text() == wanted:
        return True
    print(f"installing {requirements} into {venv.relative_to(HERE)}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    install = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*install, "-r", str(HERE / requirements)]).returncode:
        print(f"NOT INSTALLED {requirements}: its contenders are left out of the tables", flush=True)
        return False
    mark.write_text(wanted)
    return True

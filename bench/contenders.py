"""Who is measured: how each one is started, and how its items are read back."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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
SCRAPYS = (SCRAPY_TUNED, SCRAPY_LEAN, SCRAPY_STRIPPED, SCRAPY_STRIPPED_AIOHTTP, SCRAPY_PLAIN)
CONTENDERS = {each.name: each for each in (TROTLINE, BARE, *SCRAPYS, CRAWLEE)}


def prepare(contenders: list[Contender]) -> None:
    """Make the virtual environments of the peers: one per peer, so that no one's pins disturb another's."""
    for requirements in sorted({each.requirements for each in contenders if each.requirements}):
        venv = WORK / "venvs" / requirements.removeprefix("requirements-").removesuffix(".txt")
        wanted, mark = (HERE / requirements).read_text(), venv / ".installed"
        if mark.exists() and mark.read_text() == wanted:
            continue
        print(f"installing {requirements} into {venv.relative_to(HERE)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        install = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "-r", str(HERE / requirements)], check=True)
        mark.write_text(wanted)

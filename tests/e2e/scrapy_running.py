"""Scrapy in processes of its own, with and without the bridge."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.scrapy_project.site import site
from tests.e2e.small_site import serving

ROOT = Path(__file__).parents[2]
WITHIN = 200.0
"""Generous: what is not over by then hangs."""


class Run(NamedTuple):
    items: dict[str, list[str]]
    """Spider -> its items as JSON text, sorted."""
    log: str
    reasons: dict[str, str]
    """Spider -> why it was closed."""


async def crawl(
    folder: Path,
    names: Sequence[str] = (),
    frontier: str = "",
    *,
    url: str,
    processes: int = 1,
    env: Mapping[str, str] | None = None,
    **settings: Any,
) -> Run:
    """Run the spiders of `scrapy_project`; with several processes, all of them in each."""
    started, folders = [], []
    for number in range(processes):
        folders.append(folder / f"{'bridge' if frontier else 'plain'}-{number}")
        folders[-1].mkdir(parents=True)
        words = ["-W", "ignore", "-m", "tests.e2e.scrapy_project.run", "--out", str(folders[-1]), *names]
        words += ["--frontier", frontier] if frontier else []
        words += [word for name, value in settings.items() for word in ("--set", f"{name}={json.dumps(value)}")]
        started.append(
            await asyncio.create_subprocess_exec(
                sys.executable, *words,
                cwd=ROOT, env={**os.environ, "SITE": url, **(env or {})},
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )
        )  # fmt: skip
    try:
        said = await asyncio.wait_for(asyncio.gather(*(one.communicate() for one in started)), WITHIN)
    finally:
        for one in started:
            if one.returncode is None:
                one.kill()
    log = "\n".join(err.decode() for _, err in said)
    reasons: dict[str, str] = {}
    for out, _ in said:
        reasons |= json.loads(out.decode().strip().rpartition("\n")[2] or "{}")
    return Run(_items(folders), log, reasons)


def _items(folders: Sequence[Path]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for folder in folders:
        for file in folder.glob("*.jsonl"):
            found.setdefault(file.stem, []).extend(file.read_text().splitlines())
    return {name: sorted(lines) for name, lines in found.items()}


async def both(
    folder: Path, names: Sequence[str], frontier: str, env: Mapping[str, str] | None = None, processes: int = 1
) -> tuple[Run, Run]:
    """Without and with the bridge, each on a site of its own."""
    async with serving(site()) as url:
        plain = await crawl(folder, names, url=url, env=env)
    async with serving(site()) as url:
        return plain, await crawl(folder, names, frontier, url=url, env=env, processes=processes)

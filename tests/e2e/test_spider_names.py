"""A spider may be named like a module of the standard library: no process imports it by that name."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import rows_of

NAMES = ("copy", "random", "types")
HELPED = f"""
if __name__ in {NAMES}:
    raise SystemExit("imported in place of the standard library")
import copy, random, types
assert random.random() < 1 and copy.copy([]) == [] and types.NoneType
from beside import LEVEL
"""


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=2, held=()) as opened:
        yield opened


async def trotline(folder: Path, *words: str) -> tuple[int, str]:
    """The installed command: `python -m` would put the folder in front of the standard library by itself."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("trotline")), *words,
        cwd=folder, env=os.environ, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    assert b"in place of the standard library" not in out, "a process died of it, even if the next one did not"
    return process.returncode, out.decode()


@pytest.mark.parametrize("name", NAMES)
async def test_run_and_try_take_a_spider_of_any_name(site: HeldSite, tmp_path: Path, name: str) -> None:
    for other in NAMES:
        (tmp_path / f"{other}.py").write_text(HELPED + site.spider())
    (tmp_path / "beside.py").write_text("LEVEL = 1\n")

    code, out = await trotline(tmp_path, "try", f"{name}.py", "--allow-private")
    assert code == 0, out
    code, out = await trotline(tmp_path, "run", f"{name}.py", "--allow-private", "--out", "rows.db")
    assert code == 0, out
    assert {row["name"] for row in rows_of(tmp_path / "rows.db")} == site.names


async def test_start_and_work_take_one_too(site: HeldSite, tmp_path: Path) -> None:
    (tmp_path / "copy.py").write_text(HELPED + site.spider())
    (tmp_path / "beside.py").write_text("LEVEL = 1\n")

    code, out = await trotline(tmp_path, "start", "copy.py", "--detach")
    assert code == 0, out
    code, out = await trotline(tmp_path, "work", "copy.py", "--allow-private", "--until-finished")
    assert code == 0, out
    assert {row["name"] for row in rows_of(tmp_path / "site.db")} == site.names


async def test_a_process_that_is_forked_after_a_crash_finds_them_too(site: HeldSite, tmp_path: Path) -> None:
    crash = '    if page.url.endswith("page/1"): import os; os.abort()\n'
    (tmp_path / "beside.py").write_text("LEVEL = 1\n")
    text = HELPED + site.spider().replace("def page(page: Page):\n", f"def page(page: Page):\n{crash}")
    (tmp_path / "copy.py").write_text(text)

    code, out = await trotline(tmp_path, "run", "copy.py", "--allow-private")
    assert code == 3, out
    assert {row["name"] for row in rows_of(tmp_path / "site.db")} == site.names - {"page/1"}

"""Pages that bring a worker process down: one restart each time, the others go on, the guilty one is buried."""

import hashlib
import json
import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import KILLER, Ended, call, progress_of, rows_of

from trotline.ports.frontier import BEAT, DEAD_AFTER
from trotline.rules.crash_reasons import OUT_OF_MEMORY

BAD = "page/5"
RUN = ("run", "site.py", "--allow-private", "--json", "--slots", "4")

EAT = "hoard = []\n        while True: hoard.append(bytearray(1 << 24))"
REGEX = 're.match(r"(a|aa)+$", "a" * 64 + "b")'


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=9, held=()) as opened:
        yield opened


def spider(site: HeldSite, deed: str, form: str = "def", parse: float = 1.0) -> str:
    text = site.spider(more=f"limits=Limits(parse={parse})")
    bad = f'{form} page(page: Page):\n    if page.url.endswith("{BAD}"):\n        {deed}\n'
    return "import asyncio, ctypes, json, os, re, time\n" + text.replace("def page(page: Page):\n", bad)


async def run(folder: Path, text: str, *more: str) -> Ended:
    (folder / "site.py").write_text(text)
    return await call(folder, *RUN, *more)


async def assert_only_the_bad_page_died(site: HeldSite, folder: Path, ended: Ended, why: str) -> None:
    assert ended.code == 3, ended
    assert sorted(row["name"] for row in rows_of(folder / "site.db")) == sorted(site.names - {BAD})
    assert list(ended.summary["reasons"]) == [why]
    assert site.visits[BAD] == 2, "buried at the second kill"
    books = await progress_of(folder, "site")
    assert (books.waiting, books.leased, books.done, books.dead) == (0, 0, len(site.names) - 1, 1)
    assert not {name for name in books.tallies if name.startswith("retry")}, "nobody else pays an attempt"


WAYS = {
    "def": {
        "ctypes.string_at(0)": "killed: reading its page crashed the worker (SIGSEGV)",
        EAT: "killed: reading its page used more than 256 MiB",
        REGEX: "killed: reading its page took longer than 1 s",
    },
    "async def": {
        "await asyncio.sleep(0.01); ctypes.string_at(0)": "killed: reading its page crashed the worker (SIGSEGV)",
        "await asyncio.sleep(0.01); time.sleep(60)": "killed: reading its page took longer than 1 s",
        f"await asyncio.sleep(0.01)\n        {EAT}": "killed: reading its page used more than 256 MiB",
    },
}


@pytest.mark.parametrize(("form", "deed"), [(form, deed) for form, deeds in WAYS.items() for deed in deeds])
async def test_f6_f7_f8_the_grave_says_what_the_page_did(site: HeldSite, tmp_path: Path, form: str, deed: str):
    why = WAYS[form][deed]
    # Memory is filled in no time, but not on a machine that does ten other things.
    budget = 1.0 if "longer" in why else 10.0
    ended = await run(tmp_path, spider(site, deed, form, budget), "--memory", "256MiB")

    await assert_only_the_bad_page_died(site, tmp_path, ended, why)


async def test_the_body_of_a_page_that_killed_is_kept_and_its_grave_says_where(site: HeldSite, tmp_path: Path):
    assert (await run(tmp_path, spider(site, "os.abort()"))).code == 3

    body = f"<h1>{BAD}</h1>".encode()
    kept = Path(".trotline/evidence") / f"{hashlib.sha256(body).hexdigest()[:32]}.body"
    assert (tmp_path / kept).read_bytes() == body
    assert [file.name for file in (tmp_path / ".trotline/evidence").iterdir()] == [kept.name], "no other page is kept"
    [grave] = [json.loads(line) for line in (await call(tmp_path, "dead", "site", "--json")).out.splitlines()]
    assert grave["detail"] == f"2 worker processes\nits body is kept in {kept}"
    assert str(kept) in (await call(tmp_path, "dead", "site", grave["id"])).out


async def test_after_the_first_page_that_hangs_the_crawl_does_not_stand_still_for_the_next(
    site: HeldSite, tmp_path: Path
):
    text = spider(site, "while True: pass", parse=3.0).replace(f'page.url.endswith("{BAD}")', 'page.url[-1] in "57"')
    ended = await run(tmp_path, text)

    assert ended.code == 3, ended
    assert "child.relieved" in ended.err
    assert {row["name"] for row in rows_of(tmp_path / "site.db")} == site.names - {"page/5", "page/7"}
    assert list(ended.summary["reasons"].values()) == [2], "blamed and buried all the same"


async def compute(site: HeldSite, folder: Path, *, dead_after: float, beat: float) -> Ended:
    """A page that computes (once) for more than three times as long as a silent worker is waited for, with a second
    process beside it that looks every second for workers that are dead."""
    busy = (
        f"end = time.monotonic() + {3.2 * dead_after} * (not os.path.exists('computed'))\n"
        "        open('computed', 'w').close()\n"
        "        while time.monotonic() < end: pass"
    )
    (folder / "site.py").write_text(spider(site, busy, parse=600.0))
    times = {"E2E_DEAD_AFTER": f"{dead_after}", "E2E_BEAT": f"{beat}", "PYTHONPATH": str(KILLER)}
    return await call(folder, *RUN, "--processes", "2", env=times)


# Briefly; with SOAK=1 with the times that workers really have.
@pytest.mark.parametrize("dead_after", [DEAD_AFTER if os.environ.get("SOAK") else 3.0])
async def test_f5_a_page_that_computes_for_longer_than_a_lease_lives_costs_no_lease(
    site: HeldSite, tmp_path: Path, dead_after: float
):
    ended = await compute(site, tmp_path, dead_after=dead_after, beat=dead_after * BEAT / DEAD_AFTER)

    assert ended.code == 0, ended
    assert {row["name"] for row in rows_of(tmp_path / "site.db")} == site.names
    assert set(site.visits.values()) == {1}, "no lease expired, no page was visited twice"
    assert not (await progress_of(tmp_path, "site")).tallies.get("rescued")


async def test_f5_without_the_beat_of_the_supervisor_such_a_page_would_lose_its_lease(site: HeldSite, tmp_path: Path):
    """The test above can see what it looks for."""
    await compute(site, tmp_path, dead_after=1.5, beat=3600.0)

    assert (await progress_of(tmp_path, "site")).tallies["rescued"] > 0
    assert site.visits[BAD] > 1


async def test_f9_too_few_file_descriptors_are_said_before_anything_starts(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    few = (64, 64)
    ended = await call(tmp_path, *RUN, "--slots", "16", preexec_fn=lambda: resource.setrlimit(_FILES, few))

    assert ended.code == 2, ended
    assert "a process may open 64 files here, and 16 slots in each of 1 need 96" in ended.err
    assert "ulimit -n 96" in ended.err
    assert not site.visits


async def test_f9_a_low_soft_limit_is_raised_as_far_as_needed(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    low = (64, resource.getrlimit(_FILES)[1])
    ended = await call(tmp_path, *RUN, "--slots", "16", preexec_fn=lambda: resource.setrlimit(_FILES, low))

    assert ended.code == 0, ended


async def test_a_process_that_ends_for_lack_of_memory_outside_of_any_page_is_replaced(site: HeldSite, tmp_path: Path):
    """Its pages are visited again, and none of them is blamed."""
    once = (
        "import os, pathlib\n"
        "def later():\n"
        "    if not os.path.exists('died'):\n"
        f"        pathlib.Path('died').touch(); os._exit({OUT_OF_MEMORY})\n"
    )
    deed = "asyncio.get_running_loop().call_later(0.01, later)"
    ended = await run(tmp_path, once + spider(site, deed))

    assert ended.code == 0, ended
    assert {row["name"] for row in rows_of(tmp_path / "site.db")} == site.names


_FILES = resource.RLIMIT_NOFILE

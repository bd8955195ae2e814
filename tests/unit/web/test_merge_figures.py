"""What the merge after a job gave, on the job's page."""

from tests.unit.web.conftest import Client, Folder
from trotline.config import backends
from trotline.model.job import LaneRules
from trotline.model.merge import MergeTotals
from trotline.rules import merge_note
from trotline.rules.merge_note import MergeNote


async def _finished_with(folder: Folder, note: MergeNote) -> str:
    jobs = await backends.open_jobs(folder.settings.frontier)
    opened = await backends.open_frontier(folder.settings.frontier, await jobs.start("shop", LaneRules()))
    await opened.frontier.seal()
    await opened.frontier.announce_finish()
    assert await opened.console.write_note(merge_note.NOTE, merge_note.encode(note), 0)
    await opened.close()
    await jobs.close()
    return opened.job.id


async def test_things_and_pairs_to_decide_are_figures_of_the_job(server: Client, folder: Folder) -> None:
    totals = MergeTotals(sources=9_000, things=7_000, merged=1_500, review=12)
    job = await _finished_with(folder, MergeNote(read=9_000, totals=totals))
    page = (await server.get(f"/jobs/{job}")).body.decode()
    assert "<dt>Things</dt>" in page
    assert "1,500 of several records, 12 pairs to decide" in page
    assert "merge-failed" not in page


async def test_a_merge_that_failed_is_a_banner(server: Client, folder: Folder) -> None:
    job = await _finished_with(folder, merge_note.failed("same() raised KeyError: '<b>code</b>'"))
    page = (await server.get(f"/jobs/{job}")).body.decode()
    banner = page.partition('id="merge-failed"')[2].partition("</p>")[0]
    assert "The records were not merged: same() raised KeyError" in banner
    assert "<b>code" not in banner
    assert "<dt>Things</dt>" not in page

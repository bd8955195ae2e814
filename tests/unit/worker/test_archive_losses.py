"""A worker tells the job of what is gone from the archive, once."""

from types import SimpleNamespace
from typing import Any

from trotline.config.backends import open_frontier, open_jobs
from trotline.errors import FrontierUnreachable
from trotline.model.job import LaneRules
from trotline.rules import archive_loss_note
from trotline.worker.archive_losses import ArchiveLosses, tell_of_a_death


async def test_what_several_workers_lost_is_told_once_and_added_up(tmp_path: Any) -> None:
    url = f"sqlite:{tmp_path / 'frontier.db'}"
    jobs = await open_jobs(url)
    opened = await open_frontier(url, await jobs.start("shop", LaneRules()))
    one, other = SimpleNamespace(lost=0), SimpleNamespace(lost=2)
    first = ArchiveLosses(one, opened.console, "file:pages")  # type: ignore[arg-type]
    second = ArchiveLosses(other, opened.console, "file:pages")  # type: ignore[arg-type]

    async def told() -> int:
        [note] = await opened.console.read_notes([archive_loss_note.NOTE])
        found = archive_loss_note.decode(note)
        return 0 if found is None else found.lost

    await first.tell()
    assert await told() == 0
    one.lost = 3
    for losses in (first, second, first, second):
        await losses.tell()
    assert await told() == 5
    one.lost = 4
    await first.tell()
    assert await told() == 6
    await opened.close()
    await jobs.close()


async def test_a_death_makes_the_number_a_lower_bound_and_is_written_once(tmp_path: Any) -> None:
    url = f"sqlite:{tmp_path / 'frontier.db'}"
    jobs = await open_jobs(url)
    opened = await open_frontier(url, await jobs.start("shop", LaneRules()))
    assert await tell_of_a_death(opened.console, "file:pages")
    assert await tell_of_a_death(opened.console, "file:pages")
    await ArchiveLosses(SimpleNamespace(lost=3), opened.console, "file:pages").tell()  # type: ignore[arg-type]
    [note] = await opened.console.read_notes([archive_loss_note.NOTE])
    found = archive_loss_note.decode(note)
    assert note is not None and note.version == 2
    assert found is not None and (found.lost, found.incomplete) == (3, True)
    await opened.close()
    await jobs.close()


async def test_what_cannot_be_told_now_is_told_later() -> None:
    class Console:
        down = True
        data = b""

        async def read_notes(self, names: object) -> list[None]:
            if self.down:
                raise FrontierUnreachable("down")
            return [None]

        async def write_note(self, name: str, data: bytes, version: int) -> bool:
            self.data = data
            return True

    console = Console()
    losses = ArchiveLosses(SimpleNamespace(lost=3), console, "x")  # type: ignore[arg-type]
    await losses.tell()
    assert console.data == b""
    console.down = False
    await losses.tell()
    assert b'"lost":3' in console.data

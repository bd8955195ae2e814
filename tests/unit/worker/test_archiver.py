"""The archive in the group commit: before the sink and the settle; bodies are released; backpressure."""

import asyncio

import msgspec
import pytest

from tests.unit.worker.fake_ports import Diary, DiaryFrontier, DiarySink, tools, until, visit
from trotline.errors import ArchiveDenies, ArchiveUnreachable
from trotline.model.limits import MIB
from trotline.testing.archive_contract import capture
from trotline.testing.virtual_time import run_virtual
from trotline.worker.commit import Committer
from trotline.worker.worker_settings import WorkerPolicy

POLICY = WorkerPolicy(batch=4, backlog=8, commit_every=0.05)


class DiaryArchive:
    def __init__(self, diary: Diary, *, away=0, slow=0.0, bad=(), denies=False) -> None:
        self.diary, self.away, self.slow, self.bad, self.denies = diary, away, slow, bad, denies

    async def write(self, batch):
        await asyncio.sleep(self.slow)
        if self.away:
            self.away -= 1
            if self.denies:
                raise ArchiveDenies("s3://pages refuses us: SignatureDoesNotMatch")
            raise ArchiveUnreachable("s3://pages is unreachable: HTTP 503")
        if any(one.url in self.bad for one in batch):
            raise RuntimeError("cannot be encoded")
        self.diary.append(("archive", [one.url for one in batch]))


class Answered:
    """A response, and what is captured of it."""

    def __init__(self, token, size):
        self.capture, self.size = capture(token, body=b"x" * size), size

    def captured(self, visit):
        return msgspec.structs.replace(visit, response=None, captures=(self.capture,), archive=self.capture.id)


class Uncapturable(Answered):
    def captured(self, visit):
        raise RuntimeError("cannot be captured")


def archived(token, size=1000, response=Answered):
    return msgspec.structs.replace(visit(token, records=[str(token)]), response=response(token, size))


def run(story, **faults):
    diary: Diary = []

    async def whole():
        parts = tools(DiaryFrontier(diary), DiarySink(diary), archive=DiaryArchive(diary, **faults))
        parts.meter.begin()
        committer = Committer("w", parts, POLICY, set())
        running = asyncio.create_task(committer.run())
        await story(committer)
        committer.close()
        await running

    run_virtual(whole())
    return diary


def test_a_page_is_archived_before_it_is_stored_and_settled_and_its_body_is_released():
    visits = [archived(1), archived(2)]

    async def story(committer):
        for one in visits:
            committer.add(one)

    assert [what for what, _ in run(story)] == ["archive", "store", "settle"]
    assert [one.response.capture.body for one in visits] == [b"", b""]


def test_an_archive_that_is_away_is_waited_for_and_leasing_stops():
    async def story(committer):
        committer.add(archived(1))
        await until(lambda: committer.error)
        assert "archive is unreachable" in committer.held_back
        assert not committer.room.is_set()
        await until(committer.room.is_set)

    assert [what for what, _ in run(story, away=2)] == ["archive", "store", "settle"]


def test_an_archive_that_denies_access_is_waited_for_and_not_called_unreachable():
    async def story(committer):
        committer.add(archived(1))
        await until(lambda: committer.error)
        assert committer.held_back == "archive denies access: s3://pages refuses us: SignatureDoesNotMatch"
        await until(committer.room.is_set)

    assert [what for what, _ in run(story, away=2, denies=True)] == ["archive", "store", "settle"]


def test_bodies_that_wait_stop_leasing_before_there_are_many_visits():
    async def story(committer):
        for token in range(1, 4):
            committer.add(archived(token, 30 * MIB))
        assert not committer.room.is_set()
        await asyncio.sleep(0.2)
        assert "archive is slow" in committer.held_back
        await until(committer.room.is_set)

    written = [urls for what, urls in run(story, slow=1.0) if what == "archive"]
    assert [len(urls) for urls in written] == [1, 1, 1]


def test_an_archive_that_does_not_answer_is_named_before_leasing_stops():
    async def story(committer):
        committer.add(archived(1))
        await asyncio.sleep(4.0)
        assert committer.held_back == ""
        await asyncio.sleep(7.0)
        assert committer.room.is_set()
        assert committer.held_back == "archive is slow: no answer for more than 10 s"
        committer.add(archived(2))
        await asyncio.sleep(3.0)
        # The next batch has begun: the archive is not fast again because one was written.
        assert committer.held_back == "archive is slow: a batch took 12 s"
        await until(lambda: not committer.held_back)

    run(story, slow=12.0)


def test_the_time_of_the_archive_is_not_the_sinks():
    async def whole():
        diary: Diary = []
        parts = tools(DiaryFrontier(diary), DiarySink(diary), archive=DiaryArchive(diary, slow=6.0))
        parts.meter.begin()
        committer = Committer("w", parts, POLICY, set())
        committer.add(archived(1))
        committer.close()
        await committer.run()
        return parts.meter.stats()

    stats = run_virtual(whole())
    assert stats.archive == pytest.approx(6.0, abs=0.1) and stats.store < 0.5


def test_a_page_that_cannot_be_archived_is_settled_with_its_reason():
    batch = [archived(1), archived(2)]

    async def story(committer):
        for one in batch:
            committer.add(one)

    diary = run(story, bad={capture(1).url})
    assert [urls for what, urls in diary if what == "archive"] == [[capture(2).url]]
    assert [what for what, _ in diary][-2:] == ["store", "settle"]


def test_a_page_that_cannot_be_captured_is_settled_too_and_the_others_are_archived():
    async def story(committer):
        committer.add(archived(1, response=Uncapturable))
        committer.add(archived(2))

    diary = run(story)
    assert [urls for what, urls in diary if what == "archive"] == [[capture(2).url]]
    assert [what for what, _ in diary][-2:] == ["store", "settle"]


def test_after_many_such_pages_the_worker_stops():
    async def story(committer):
        for token in range(1, 30):
            committer.add(archived(token))

    with pytest.raises(RuntimeError, match="cannot be encoded"):
        run(story, bad={capture(token).url for token in range(30)})

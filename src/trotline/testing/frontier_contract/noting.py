"""N1 to N4: notes of a job, which operators' programs share. That forgetting a job deletes them (N3) needs `Jobs`."""

import asyncio

import pytest

from trotline.errors import FrontierError
from trotline.model.note import LARGEST_NOTE, Note
from trotline.testing.frontier_contract.bench import Bench, tasks

SUMMARY = "summary"


class NotePromises:
    async def test_n1_a_note_that_was_written_is_read_by_all(self, bench: Bench) -> None:
        writer, reader = await bench.open(), await bench.again()
        assert await reader.read_notes([SUMMARY]) == [None]

        assert await writer.write_note(SUMMARY, b"one", 0)

        assert await reader.read_notes([SUMMARY]) == [Note(b"one", 1)]
        assert await reader.write_note(SUMMARY, b"two", 1)
        assert await writer.read_notes([SUMMARY]) == [Note(b"two", 2)]

    async def test_n1_notes_are_read_in_the_order_of_their_names(self, bench: Bench) -> None:
        frontier = await bench.open()
        names = [f"series/5s/{number}" for number in range(250)]
        for number, name in enumerate(names[:3]):
            assert await frontier.write_note(name, b"%d" % number, 0)
        assert await frontier.write_note(names[249], b"", 0)

        notes = await frontier.read_notes(list(reversed(names)))

        assert notes[-3:] == [Note(b"2", 1), Note(b"1", 1), Note(b"0", 1)]
        assert notes[:-3] == [Note(b"", 1), *[None] * 246], "an empty note is a note"
        assert await frontier.read_notes([]) == []
        assert await frontier.read_notes([names[1], "x", names[1]]) == [Note(b"1", 1), None, Note(b"1", 1)]

    async def test_n1_any_bytes_and_any_name_are_kept(self, bench: Bench) -> None:
        writer, reader = await bench.open(), await bench.again()
        every = bytes(range(256)) * 256
        names = ["a b", "a\nb", "ä/%_*", "{x}", "x" * 100]
        assert len(every) == LARGEST_NOTE

        for name in names:
            assert await writer.write_note(name, every, 0)

        assert await reader.read_notes(names) == [Note(every, 1)] * len(names)

    async def test_n2_of_two_writers_with_the_same_version_one_wins(self, bench: Bench) -> None:
        one, other = await bench.open(), await bench.again()
        for version in range(5):
            data = [b"%d one" % version, b"%d other" % version]

            won = await asyncio.gather(
                one.write_note(SUMMARY, data[0], version), other.write_note(SUMMARY, data[1], version)
            )

            assert sorted(won) == [False, True]
            assert await one.read_notes([SUMMARY]) == [Note(data[won.index(True)], version + 1)]

    async def test_n2_of_two_writers_with_the_same_data_one_wins(self, bench: Bench) -> None:
        one, other = await bench.open(), await bench.again()

        won = [await client.write_note(SUMMARY, b"the same", 0) for client in (one, other, one)]

        assert won == [True, False, False]
        assert await other.read_notes([SUMMARY]) == [Note(b"the same", 1)]

    async def test_n2_another_version_than_the_notes_changes_nothing(self, bench: Bench) -> None:
        frontier = await bench.open()
        assert not await frontier.write_note(SUMMARY, b"x", 1), "there is none"
        assert await frontier.write_note(SUMMARY, b"kept", 0)

        for version in (0, 2, 99):
            assert not await frontier.write_note(SUMMARY, b"x", version)

        assert await frontier.read_notes([SUMMARY]) == [Note(b"kept", 1)]

    async def test_n3_each_job_has_its_own_notes(self, bench: Bench) -> None:
        one = await bench.open()
        assert await one.write_note(SUMMARY, b"one", 0)
        if not bench.durable:
            return
        other = await bench.another_job()

        assert await other.read_notes([SUMMARY]) == [None]
        assert await other.write_note(SUMMARY, b"other", 0)

        assert await one.read_notes([SUMMARY]) == [Note(b"one", 1)]

    async def test_n4_what_is_too_large_is_refused_and_changes_nothing(self, bench: Bench) -> None:
        frontier = await bench.open()
        assert await frontier.write_note(SUMMARY, b"kept", 0)

        with pytest.raises(FrontierError, match="65,536"):
            await frontier.write_note(SUMMARY, bytes(LARGEST_NOTE + 1), 1)
        for name in ("", "x" * 101):
            with pytest.raises(FrontierError, match="name"):
                await frontier.write_note(name, b"x", 0)

        assert await frontier.read_notes([SUMMARY, "x" * 101]) == [Note(b"kept", 1), None]

    async def test_f10_a_note_is_not_part_of_the_crawl(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(2))
        before = await frontier.progress()

        await frontier.write_note(SUMMARY, b"x", 0)

        after = await frontier.progress()
        assert (after.waiting, after.admitted, after.tallies) == (before.waiting, before.admitted, before.tallies)

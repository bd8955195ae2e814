"""The promises of a sink (S1 to S6), as tests that any sink can inherit:

    class TestFolderSink(SinkContract):
        @pytest.fixture
        def sink(self, tmp_path):
            return FolderSink(tmp_path)

        async def rows(self, sink):
            found = [json.loads(path.read_text()) for path in sink.folder.glob("*.json")]
            return {(row["site"], row["kind"], row["key"]): row["data"] for row in found}

`rows` says what the sink holds. Without it only the tests that need no reading run; the others say what is missing.
The `sink` fixture must give an empty sink every time.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from trotline.errors import SinkRejects
from trotline.model.record import Record
from trotline.ports.sink import Sink

Identity = tuple[str, str, str]
Rows = Mapping[Identity, Mapping[str, Any]]

T1: Identity = ("shop", "product", "T1")


def product(
    key: str = "T1", *, seen_at: float = 1_000.0, site: str = "shop", kind: str = "product", **data: Any
) -> Record:
    """A record for tests; the data is `{"sku": key}` and what else is given."""
    url = f"https://shop.example/p/{key}"
    return Record(kind=kind, key=key, data={"sku": key, **data}, url=url, site=site, seen_at=seen_at)


class SinkContract:
    """S1 to S6. A subclass provides the fixture `sink`."""

    pytestmark = pytest.mark.asyncio

    async def rows(self, sink: Any) -> Rows:
        """What the sink holds: (site, kind, key) -> data."""
        raise NotImplementedError("override `async def rows(self, sink)`: it answers {(site, kind, key): data}")

    def second(self, sink: Any) -> Any:
        """Another sink on the same place, as a second worker has it; None if that is not possible."""
        return None

    async def _held(self, sink: Any) -> dict[Identity, dict[str, Any]]:
        try:
            rows = await self.rows(sink)
        except NotImplementedError as missing:
            pytest.skip(str(missing))
        return {identity: dict(data) for identity, data in rows.items()}

    async def test_what_was_written_is_there(self, sink: Sink) -> None:
        await sink.write([product("T1", title="Tea", price=4.5), product("T2", title="Coffee", stock=None)])

        held = await self._held(sink)
        await sink.close()
        assert {T1, ("shop", "product", "T2")} == held.keys()
        assert held[T1]["title"] == "Tea"

    async def test_s1_the_same_batch_twice_leaves_the_same_state(self, sink: Sink) -> None:
        batch = [product("T1", title="Tea"), product("T2", title="Coffee")]
        await sink.write(batch)
        once = await self._held(sink)

        await sink.write(batch)

        assert once == await self._held(sink)
        await sink.close()

    async def test_s1_a_batch_that_names_one_thing_twice_can_be_repeated(self, sink: Sink) -> None:
        batch = [product(title="Tea"), product(title="Green tea")]
        for _ in range(2):
            await sink.write(batch)

        assert (await self._held(sink))[T1]["title"] == "Green tea"
        await sink.close()

    async def test_s2_a_newer_sighting_replaces_an_older_one(self, sink: Sink) -> None:
        await sink.write([product(seen_at=1_000.0, title="old")])
        await sink.write([product(seen_at=1_001.0, title="new")])

        assert (await self._held(sink))[T1]["title"] == "new"
        await sink.close()

    async def test_s2_an_older_sighting_does_not_overwrite_a_newer_one(self, sink: Sink) -> None:
        await sink.write([product(seen_at=1_001.0, title="new")])
        await sink.write([product(seen_at=1_000.0, title="old")])

        assert (await self._held(sink))[T1]["title"] == "new"
        await sink.close()

    async def test_s2_holds_within_a_batch(self, sink: Sink) -> None:
        await sink.write([product(seen_at=1_001.0, title="new"), product(seen_at=1_000.0, title="old")])

        assert (await self._held(sink))[T1]["title"] == "new"
        await sink.close()

    async def test_s2_seeing_the_same_again_makes_the_sighting_newer(self, sink: Sink) -> None:
        await sink.write([product(seen_at=1_000.0, title="tea")])
        await sink.write([product(seen_at=1_002.0, title="tea")])
        await sink.write([product(seen_at=1_001.0, title="late")])

        assert (await self._held(sink))[T1]["title"] == "tea"
        await sink.close()

    async def test_s3_a_batch_with_an_impossible_record_is_not_stored_at_all(self, sink: Sink) -> None:
        await sink.write([product("T0")])
        with pytest.raises(Exception, match=r".+") as refused:
            await sink.write([product("T1"), product("T2", what=object()), product("T3")])

        # Named, so that the batch can be stored without it and need not wait for ever.
        assert isinstance(refused.value, SinkRejects)
        assert list(refused.value.rejected) == [1]
        assert {("shop", "product", "T0")} == (await self._held(sink)).keys()
        await sink.write([product("T1"), product("T3")])
        assert {("shop", "product", f"T{number}") for number in (0, 1, 3)} == (await self._held(sink)).keys()
        await sink.close()

    async def test_s3_a_large_batch_is_stored_whole(self, sink: Sink) -> None:
        await sink.write([product(f"T{number}", text="x" * 500) for number in range(500)])

        assert len(await self._held(sink)) == 500
        await sink.close()

    async def test_s3_what_was_written_is_there_for_the_next_one(self, sink: Sink) -> None:
        other = self.second(sink)
        if other is None:
            pytest.skip("override `second(self, sink)`: it answers another sink on the same place")
        await sink.write([product()])
        await sink.close()

        assert {T1} == (await self._held(other)).keys()
        await other.close()

    async def test_s4_an_empty_batch_is_harmless(self, sink: Sink) -> None:
        await sink.write([])
        await sink.write([product()])
        await sink.write([])

        assert {T1} == (await self._held(sink)).keys()
        await sink.close()

    async def test_s5_one_key_in_two_kinds_and_two_sites_is_four_rows(self, sink: Sink) -> None:
        await sink.write([product(kind=kind, site=site) for kind in ("product", "offer") for site in ("shop", "store")])

        assert len(await self._held(sink)) == 4
        await sink.close()

    async def test_s5_many_writers_at_once_leave_one_row_each_and_the_newest(self, sink: Sink) -> None:
        other = self.second(sink) or sink
        writers = [sink, other] * 4
        await asyncio.gather(
            *(
                writer.write([product(f"T{key}", seen_at=1_000.0 + turn, turn=turn) for key in range(20)])
                for turn, writer in enumerate(writers)
            )
        )

        held = await self._held(sink)
        assert len(held) == 20
        assert {"7"} == {str(data["turn"]) for data in held.values()}
        await sink.close()
        if other is not sink:
            await other.close()

    async def _counting(self, sink: Any) -> Any:
        if not hasattr(sink, "count") or await sink.count() is None:
            pytest.skip("this sink cannot count: summaries say how many records were found, not what is stored")
        return sink

    async def test_s6_what_is_counted_is_what_is_there(self, sink: Sink) -> None:
        counting = await self._counting(sink)
        await sink.write([product("T1", title="Tea"), product("T2"), product("T3", kind="offer")])
        # New, changed, the same again, and twice in one batch.
        await sink.write(
            [
                product("T4", seen_at=1_001.0),
                product("T1", seen_at=1_001.0, title="Green tea"),
                product("T2", seen_at=1_001.0),
                product("T5", seen_at=1_001.0, title="one"),
                product("T5", seen_at=1_001.0, title="two"),
            ]
        )
        # Older than the row: nothing changes.
        await sink.write([product("T1", seen_at=999.0, title="Black tea")])

        counted = await counting.count()
        assert counted.rows == {"product": 4, "offer": 1}
        assert sum(counted.rows.values()) == len(await self._held(sink))
        assert (counted.new, counted.changed, counted.again) == (5, 1, 3)
        assert (await counting.count(rows=False)).rows is None
        await sink.close()

    async def test_s6_a_batch_that_is_repeated_is_seen_again_and_not_new(self, sink: Sink) -> None:
        counting = await self._counting(sink)
        batch = [product(f"T{number}") for number in range(200)]
        await sink.write(batch)
        await sink.write(batch)

        counted = await counting.count()
        assert (counted.new, counted.changed, counted.again) == (200, 0, 200)
        assert counted.rows == {"product": 200}
        await sink.close()

    async def test_s6_writers_of_one_job_are_counted_together(self, sink: Sink) -> None:
        counting = await self._counting(sink)
        other = self.second(sink) or sink
        await asyncio.gather(*(one.write([product(f"T{n}") for n in range(50)]) for one in (sink, other)))

        counted = await counting.count()
        assert (counted.new, counted.changed, counted.again) == (50, 0, 50)
        await sink.close()
        if other is not sink:
            await other.close()

    async def test_s6_an_empty_sink_counts_nothing(self, sink: Sink) -> None:
        counted = await (await self._counting(sink)).count()

        assert (counted.new, counted.changed, counted.again, sum(counted.rows.values())) == (0, 0, 0, 0)
        await sink.close()

    async def test_odd_text_does_not_cost_the_row(self, sink: Sink) -> None:
        await sink.write(
            [product("T1", title="a\0b"), product("T2", title="half \ud83d pair"), product("T3", title="é")]
        )

        assert len(await self._held(sink)) == 3
        await sink.close()

    async def test_closing_without_writing_is_harmless(self, sink: Sink) -> None:
        await sink.close()

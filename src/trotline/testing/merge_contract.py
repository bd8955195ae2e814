"""The promises of a merge store (M1 to M7), as tests that any store can inherit:

class TestFolderMergeStore(MergeStoreContract):
    @pytest.fixture
    def place(self, tmp_path):
        return MergePlace(sink=FolderSink(tmp_path), store=FolderMergeStore(tmp_path), forget=...)
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from trotline.errors import MergeRaced
from trotline.model.merge import Link, MergeChange, MergeTotals, ReviewDecision, Source, thing_id
from trotline.model.merge import MergeRule as Rule
from trotline.ports.merge_store import MergeStore
from trotline.ports.sink import Sink
from trotline.rules.merge_fields import thing_of
from trotline.testing.sink_contract import product

RULE = 77
BEGIN = ("", "", "")


class MergePlace(NamedTuple):
    """A sink, the merge store of the same place, and a way to remove a record of it."""

    sink: Sink
    store: MergeStore
    forget: Callable[[str, str, str], Awaitable[Any]]


def change(
    version: int, sources: list[Source], *, keys: Any = None, links: tuple[Link, ...] = (), gone: tuple[int, ...] = ()
) -> MergeChange:
    """Each source a thing of its own."""
    return MergeChange(
        version=version,
        rule=RULE,
        sources=tuple(sources),
        gone=gone,
        keys={source.id: (5, source.id | 3) for source in sources} if keys is None else keys,
        links=links,
        things=(),
        alone=tuple(sources),
    )


class MergeStoreContract:
    """M1 to M7. A subclass provides the fixture `place`."""

    pytestmark = pytest.mark.asyncio

    async def _three(self, place: MergePlace) -> list[Source]:
        await place.sink.write([product("T1"), product("T2"), product("T3", site="other")])
        await place.store.open()
        found = await place.store.changed(RULE, (), BEGIN, 10)
        await place.store.apply(change(await place.store.version(), found))
        return found

    async def test_m7_reading_before_the_first_merge_finds_nothing(self, place: MergePlace) -> None:
        await place.sink.write([product("T1")])

        assert not await place.store.decisions()
        assert not await place.store.review(10)
        assert not await place.store.gone(10)
        assert MergeTotals() == await place.store.totals()
        assert await place.store.thing("0" * 16) is None
        assert 0 == await place.store.version() == await place.store.rule()
        await self._close(place)

    async def test_m2_new_records_are_found_in_the_order_of_their_identity(self, place: MergePlace) -> None:
        await place.sink.write([product("T2"), product("T1", title="Tea"), product("T3", site="other", kind="review")])
        await place.store.open()

        found = await place.store.changed(RULE, (), BEGIN, 10)
        rest = await place.store.changed(RULE, (), found[0][1:4], 10)
        reviews = await place.store.changed(RULE, ("review",), BEGIN, 10)
        one = await place.store.changed(RULE, (), BEGIN, 1)

        await self._close(place)
        assert [("other", "review", "T3"), ("shop", "product", "T1"), ("shop", "product", "T2")] == [
            source[1:4] for source in found
        ]
        assert not any(source.merged for source in found)
        assert found[1:] == rest
        assert found[:1] == reviews == one

    async def test_m2_a_merged_record_is_found_again_when_it_was_seen_again_or_the_rule_changed(
        self, place: MergePlace
    ) -> None:
        sources = await self._three(place)
        assert [] == await place.store.changed(RULE, (), BEGIN, 10)

        await place.sink.write([product("T1", seen_at=2_000.0)])

        again = await place.store.changed(RULE, (), BEGIN, 10)
        other_rule = await place.store.changed(RULE + 1, (), BEGIN, 10)
        await self._close(place)
        assert [("T1", True, 2_000.0)] == [(source.key, source.merged, source.seen_at) for source in again]
        assert len(sources) == len(other_rule)

    async def test_m2_a_merged_record_that_a_reparse_has_changed_is_found_again(self, place: MergePlace) -> None:
        sources = await self._three(place)

        await place.sink.write([product("T1", price=1)])

        [again] = await place.store.changed(RULE, (), BEGIN, 10)
        await place.store.apply(change(await place.store.version(), [again]))
        rest = await place.store.changed(RULE, (), BEGIN, 10)
        await self._close(place)
        assert ("T1", sources[0].seen_at) == (again.key, again.seen_at)
        assert [] == rest

    async def test_m1_a_change_of_an_older_state_is_refused(self, place: MergePlace) -> None:
        await place.sink.write([product("T1")])
        await place.store.open()
        version = await place.store.version()
        found = await place.store.changed(RULE, (), BEGIN, 10)
        await place.store.apply(change(version, found))

        with pytest.raises(MergeRaced):
            await place.store.apply(change(version, found))

        assert 1 == (await place.store.totals()).things
        assert RULE == await place.store.rule()
        await self._close(place)

    async def test_m3_nothing_is_left_of_a_record_that_is_gone(self, place: MergePlace) -> None:
        sources = await self._three(place)
        await place.forget(*sources[1][1:4])

        gone = await place.store.gone(10)
        await place.store.apply(change(await place.store.version(), [], gone=tuple(gone)))

        assert [sources[1].id] == gone
        assert [] == await place.store.gone(10)
        assert 2 == (await place.store.totals()).sources == (await place.store.totals()).things
        assert {} == await place.store.keys(gone)
        assert 2 == (await place.store.count([5]))[5]
        await self._close(place)

    async def test_m4_every_source_belongs_to_the_thing_of_the_last_change(self, place: MergePlace) -> None:
        [a, b, c] = await self._three(place)
        version = await place.store.version()
        joined = MergeChange(
            version=version,
            rule=RULE,
            sources=(a._replace(merged=True),),
            gone=(),
            keys={a.id: (5,)},
            links=(),
            things=(thing_of([a, b], Rule()),),
            alone=(),
        )

        await place.store.apply(joined)

        totals = await place.store.totals()
        shown = await place.store.thing(joined.things[0].id)
        await self._close(place)
        assert (3, 2, 1) == (totals.sources, totals.things, totals.merged)
        assert shown is not None
        assert {a.id, b.id} == {source.id for source in shown.sources}
        assert c.id not in {source.id for source in shown.sources}

    async def test_m4_a_source_that_is_alone_has_its_own_fields_whatever_its_name(self, place: MergePlace) -> None:
        odd = ["two\nlines", "\n\\.\n", 'a "quoted", key', "tab\there", "ümläut ☃", "'", "\\N", "{1,2}", " "]
        await place.sink.write([product(key, title=f"tea {key}") for key in odd])
        await place.store.open()
        found = await place.store.changed(RULE, (), BEGIN, 50)

        await place.store.apply(change(await place.store.version(), found))

        shown = {}
        for source in found:
            thing = await place.store.thing(thing_id(source.id))
            assert thing is not None
            assert "{}" == thing.provenance
            assert [source.key] == [one.key for one in thing.sources]
            shown[source.key] = msgspec.json.decode(thing.data)["title"]
        again = await place.store.changed(RULE, (), BEGIN, 50)
        await self._close(place)
        assert {key: f"tea {key}" for key in odd} == shown
        assert [] == again

    async def test_m5_keys_and_links_are_those_of_the_last_change(self, place: MergePlace) -> None:
        [a, b, c] = await self._three(place)
        low, high = sorted((a.id, b.id))
        again = [one._replace(merged=True) for one in (a, b)]
        first = change(
            await place.store.version(), again, keys={a.id: (9,), b.id: (9, 13)}, links=(Link(low, high, 0.9),)
        )
        await place.store.apply(first)
        assert {9: sorted([a.id, b.id])} == {key: sorted(ids) for key, ids in (await place.store.members([9])).items()}
        assert [Link(low, high, 0.9)] == await place.store.links([a.id]) == await place.store.links([a.id, b.id])
        assert [c.id] == (await place.store.members([5]))[5]

        await place.store.apply(change(await place.store.version(), again[:1], keys={a.id: (17,)}))

        assert {a.id: [17]} == await place.store.keys([a.id])
        assert {9: 1, 17: 1} == await place.store.count([9, 17, 21])
        assert [] == await place.store.links([b.id])
        await self._close(place)

    async def test_m6_what_people_decided_stays_and_makes_its_sources_changed(self, place: MergePlace) -> None:
        [a, b, c] = await self._three(place)
        low, high = sorted((a.id, b.id))

        await place.store.decide([ReviewDecision(low, high, False)])
        await place.store.decide([ReviewDecision(low, high, True)])

        assert [ReviewDecision(low, high, True)] == await place.store.decisions()
        changed = await place.store.changed(RULE, (), BEGIN, 10)
        assert {a.id, b.id} == {source.id for source in changed}
        await place.forget(*a[1:4])
        await place.store.apply(change(await place.store.version(), [], gone=(a.id,)))
        assert [ReviewDecision(low, high, True)] == await place.store.decisions()
        assert c.id not in {source.id for source in changed}
        await self._close(place)

    async def test_pairs_that_nothing_has_decided_are_for_review(self, place: MergePlace) -> None:
        [a, b, c] = await self._three(place)
        links = tuple(Link(min(a.id, other.id), max(a.id, other.id), score) for other, score in ((b, 0.75), (c, 0.72)))
        again = [one._replace(merged=True) for one in (a, b, c)]
        await place.store.apply(change(await place.store.version(), again, links=links))

        before = await place.store.review(10)
        await place.store.decide([ReviewDecision(links[0].a, links[0].b, False)])
        after = await place.store.review(10)

        await place.store.finish()
        await self._close(place)
        assert [0.75, 0.72] == [pair.score for pair in before]
        assert [0.72] == [pair.score for pair in after]

    async def _close(self, place: MergePlace) -> None:
        await place.store.close()
        await place.store.close()
        await place.sink.close()

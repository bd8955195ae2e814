"""The promises of a ledger (V1 to V3), as tests that any sink that keeps visits can inherit:

    class TestMySink(LedgerContract):
        @pytest.fixture
        def ledger(self, tmp_path):
            return MySink(tmp_path)

The `ledger` fixture must give an empty one every time, which is a Sink and a Ledger.
"""

import asyncio
from typing import Any

import msgspec
import pytest

from trotline.model.visit_row import VisitRow
from trotline.testing.sink_contract import product

START = 1_760_000_000.0
"""A moment of our days: a ledger may keep its lines by day."""


def line(token: int = 1, *, at: float = 0.0, fingerprint: int = 7, **more: Any) -> VisitRow:
    """A visit for tests; `at` is in seconds after START."""
    known: dict[str, Any] = {
        "job": "shop-1",
        "token": token,
        "site": "shop",
        "url": f"https://shop.example/p/{fingerprint}",
        "fingerprint": fingerprint,
        "route": "product",
        "lane": "shop.example",
        "worker": "w1",
        "leased_at": START + at,
    }
    return VisitRow(**known | more)


FULL = line(
    5,
    at=1.25,
    fingerprint=-(2**63),
    url="https://shop.example/é?a=1&b=%20",
    attempt=2,
    depth=3,
    parent="https://shop.example/",
    found_at=START - 10.5,
    proxy="p3",
    status=503,
    took=0.125,
    size=10_000_000_000,
    verdict="broken",
    outcome="retry",
    why="broken: 503",
    records=4,
    children=5,
    moved_to="https://shop.example/elsewhere",
    archive="not archived: its route archives none",
)


class LedgerContract:
    """V1 to V3. A subclass provides the fixture `ledger`."""

    pytestmark = pytest.mark.asyncio

    def second(self, ledger: Any) -> Any:
        """Another one on the same place, as a second worker has it; None if that is not possible."""
        return None

    async def test_it_says_that_it_keeps_visits(self, ledger: Any) -> None:
        assert ledger.keeps_visits
        await ledger.close()

    async def test_what_was_logged_is_read_unchanged(self, ledger: Any) -> None:
        await ledger.log([FULL])

        assert await ledger.story([FULL.fingerprint]) == [FULL]
        await ledger.close()

    async def test_visits_are_stored_with_the_records_of_their_batch(self, ledger: Any) -> None:
        await ledger.write([product("T1")], [line(1)])
        await ledger.write([], [line(2, at=1)])

        assert [1, 2] == [visit.token for visit in await ledger.story([7])]
        await ledger.close()

    async def test_a_batch_with_an_impossible_record_leaves_no_visit(self, ledger: Any) -> None:
        with pytest.raises(Exception, match=r".+"):
            await ledger.write([product("T1", what=object())], [line(1)])

        assert await ledger.story([7]) == []
        await ledger.close()

    async def test_v1_the_same_visit_twice_is_one_line(self, ledger: Any) -> None:
        for _ in range(2):
            await ledger.write([product()], [line(1), line(2, at=1)])
        await ledger.log([line(1), line(1)])

        assert [1, 2] == [visit.token for visit in await ledger.story([7])]
        await ledger.close()

    async def test_v1_one_token_of_two_jobs_is_two_lines(self, ledger: Any) -> None:
        await ledger.log([line(1), line(1, at=1, job="shop-2")])

        assert ["shop-1", "shop-2"] == [visit.job for visit in await ledger.story([7])]
        await ledger.close()

    async def test_v2_what_was_logged_is_there_for_the_next_one(self, ledger: Any) -> None:
        other = self.second(ledger)
        if other is None:
            pytest.skip("override `second(self, ledger)`: it answers another one on the same place")
        await ledger.log([line(1)])
        await ledger.close()

        assert [line(1)] == await other.story([7])
        await other.close()

    async def test_v3_a_story_is_in_order_of_time(self, ledger: Any) -> None:
        await ledger.log([line(3, at=7200), line(1, at=0), line(2, at=60)])

        assert [1, 2, 3] == [visit.token for visit in await ledger.story([7])]
        await ledger.close()

    async def test_v3_a_long_story_has_the_newest_visits(self, ledger: Any) -> None:
        await ledger.log([line(token, at=token) for token in range(1, 31)])

        assert [28, 29, 30] == [visit.token for visit in await ledger.story([7], limit=3)]
        await ledger.close()

    async def test_a_story_is_of_all_identities_that_were_asked_for_and_of_no_other(self, ledger: Any) -> None:
        await ledger.log([line(n, at=n, fingerprint=n) for n in range(1, 6)])

        assert [2, 4] == [visit.token for visit in await ledger.story([4, 2, 99])]
        assert await ledger.story([]) == []
        await ledger.close()

    async def test_a_url_is_found_under_whatever_identity_it_was_visited(self, ledger: Any) -> None:
        where = "https://shop.example/new-place"
        await ledger.log([line(1), line(2, at=1, url=where), line(3, at=2, fingerprint=8, url=where)])

        assert [2, 3] == [visit.token for visit in await ledger.story([], url=where)]
        assert [1, 2, 3] == [visit.token for visit in await ledger.story([7], url=where)]
        await ledger.close()

    async def test_rows_are_found_by_the_pages_they_were_made_of(self, ledger: Any) -> None:
        await ledger.write([product("T1"), product("T2"), product("T3")])

        wanted = ["https://shop.example/p/T1", "https://shop.example/p/T3", "https://shop.example/p/none"]
        assert ["T1", "T3"] == sorted(row.key for row in await ledger.rows(wanted))
        assert await ledger.rows([]) == []
        await ledger.close()

    async def test_odd_text_does_not_cost_the_line(self, ledger: Any) -> None:
        odd = ["a\0b", "half \ud83d pair", "é", "x" * 5000, "'; DROP TABLE visits; --"]
        await ledger.log([line(n, at=n, why=text, url=text) for n, text in enumerate(odd, 1)])

        assert len(await ledger.story([7])) == 5
        await ledger.close()

    async def test_empty_lists_are_harmless(self, ledger: Any) -> None:
        await ledger.log([])
        await ledger.write([], [])

        assert await ledger.story([7]) == []
        await ledger.close()

    async def test_many_writers_at_once_lose_no_line(self, ledger: Any) -> None:
        other = self.second(ledger) or ledger
        writers = [ledger, other] * 4
        await asyncio.gather(
            *(
                writer.log([line(100 * turn + n, at=n, worker=f"w{turn}") for n in range(70)])
                for turn, writer in enumerate(writers)
            )
        )

        assert len(await ledger.story([7], limit=1000)) == 560
        await ledger.close()
        if other is not ledger:
            await other.close()

    async def test_lines_hold_nothing_that_was_not_said(self, ledger: Any) -> None:
        await ledger.log([line(1)])

        [found] = await ledger.story([7])
        assert msgspec.structs.asdict(found) == msgspec.structs.asdict(line(1))
        await ledger.close()

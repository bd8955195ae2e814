"""Tasks that the books count at a broker which does not have them any more, or does not answer."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.unit.frontier.memory_broker import MemoryBroker
from trotline.frontier import broker_health
from trotline.frontier.broker_health import MissingParcels
from trotline.frontier.known_broker_outage import KnownBrokerOutage
from trotline.ports.broker_books import ShelfView, Shelves


class CountingBooks:
    """What the books say; that real ones count right is tested in tests/contract/test_brokered_books.py."""

    def __init__(self, ready: int = 0, unpublished: int = 0, **shelves: int) -> None:
        self.ready, self.unpublished_parcels, self.counts = ready, unpublished, shelves
        self.looks = 0

    async def shelves(self) -> Shelves:
        self.looks += 1
        views = tuple(ShelfView(shelf, parcels, True) for shelf, parcels in self.counts.items())
        return Shelves(self.ready, self.unpublished_parcels, 0, views)

    async def shelved(self, lane: str | None = None) -> int:
        return 30


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_health, "SURE_AFTER", 0.0)


async def look(books: CountingBooks, broker: MemoryBroker) -> str:
    return (await MissingParcels(books, broker).look()).missing  # type: ignore[arg-type]


async def test_tasks_on_shelves_whose_queues_are_empty_are_named() -> None:
    broker = MemoryBroker()
    broker.queues["full"].append(b"{}")

    assert await look(CountingBooks(full=1, none=0), broker) == ""
    assert (
        await look(CountingBooks(full=1, lost=2), broker)
        == "the books count 30 tasks on a shelf whose queue at memory is empty"
    )
    assert "on 2 shelves whose queues at memory are empty" in await look(CountingBooks(a=1, b=2), broker)


async def test_nothing_is_said_while_other_tasks_are_left_or_on_their_way() -> None:
    assert await look(CountingBooks(ready=1, lost=2), MemoryBroker()) == ""
    assert await look(CountingBooks(unpublished=1, lost=2), MemoryBroker()) == ""


async def test_a_message_that_a_worker_moves_just_now_is_not_missing() -> None:
    class Moving(CountingBooks):
        async def shelves(self) -> Shelves:
            self.counts["lost"] -= 1
            return await super().shelves()

    assert await look(Moving(lost=5), MemoryBroker()) == ""


async def test_a_view_that_stays_open_asks_seldom_and_a_broker_that_is_down_is_not_blamed() -> None:
    books, broker = CountingBooks(lost=1), MemoryBroker()
    missing = MissingParcels(books, broker)  # type: ignore[arg-type]
    assert {await missing.look() for _ in range(5)} == {await missing.look()} != {""}
    assert books.looks == 2

    down = MissingParcels(CountingBooks(lost=1), Down())  # type: ignore[arg-type]
    assert (await down.look()).missing == ""


class Down(MemoryBroker):
    async def depth(self, shelves: object) -> dict[str, int]:
        self.down = True
        await self._call("depth")
        return {}

    async def rejected(self) -> int:
        return len(await self.depth(()))


@pytest.mark.parametrize(
    "books", [CountingBooks(a=1), CountingBooks(ready=9, a=1), CountingBooks(unpublished=1), CountingBooks(ready=9)]
)
async def test_a_broker_that_is_down_is_named_if_tasks_are_there_or_have_to_go_there(books: CountingBooks) -> None:
    found = await MissingParcels(books, Down()).look()  # type: ignore[arg-type]
    needed = books.counts or books.unpublished_parcels
    assert found.unreachable.startswith("broker is unreachable: ") == bool(needed)


async def test_a_broker_that_does_not_answer_delays_a_view_once_and_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_health, "PATIENCE", 0.05)

    class Silent(MemoryBroker):
        answers = asyncio.Event()

        async def depth(self, shelves: Sequence[str]) -> dict[str, int]:
            await self.answers.wait()
            return dict.fromkeys(shelves, 1)

    missing = MissingParcels(CountingBooks(a=1), broker := Silent())  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        assert "memory has not answered for " in (await missing.look()).unreachable
        monkeypatch.setattr(broker_health, "PATIENCE", 60.0)
        assert (await missing.look()).unreachable, "and at once"
        broker.answers.set()
        while (await missing.look()).unreachable:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
    await missing.close()


async def test_a_broker_that_does_not_answer_delays_the_views_of_all_its_jobs_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_health, "PATIENCE", 0.05)

    class Silent(MemoryBroker):
        asked = 0

        async def depth(self, shelves: object) -> dict[str, int]:
            Silent.asked += 1
            await asyncio.Event().wait()
            return {}

    outage = KnownBrokerOutage()
    first, *others = (MissingParcels(CountingBooks(a=1), Silent(), outage) for _ in range(30))  # type: ignore[arg-type]
    said = (await first.look()).unreachable
    monkeypatch.setattr(broker_health, "PATIENCE", 60.0)
    async with asyncio.timeout(5):
        assert {(await each.look()).unreachable for each in others} == {said} != {""}
        assert Silent.asked == 1
        outage.found(said, 0.0)
        again = asyncio.create_task(others[0].look())
        while Silent.asked < 2:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
    again.cancel()
    for each in (first, *others):
        await each.close()


async def test_closing_ends_a_look_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_health, "PATIENCE", 0.01)

    class Silent(MemoryBroker):
        async def depth(self, shelves: object) -> dict[str, int]:
            await asyncio.Event().wait()
            return {}

    missing = MissingParcels(CountingBooks(a=1), Silent())  # type: ignore[arg-type]
    await missing.look()
    async with asyncio.timeout(5):
        await missing.close()
        await missing.close()

"""What a Scrapy process sends: known requests do not reach the frontier, and none is lost with the lease of a page."""

from collections.abc import Sequence

import pytest

from trotline.bridges.scrapy.result_writer import MANY_SHARED, ResultWriter
from trotline.errors import FrontierGone
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.outcome import Bury, Done
from trotline.model.task import Task


def task(number: int) -> Task:
    return Task(url=f"http://h.test/{number}", route="scrapy", lane="h.test", fingerprint=number)


def page(token: int, *children: int) -> Settlement:
    lease = Lease(task(1_000_000 + token), token, 0.0, 0.25, 0.0, 0.0)
    return Settlement(lease, Done(), children=tuple(map(task, children)))


class Frontier:
    """Notes what it gets, in its order."""

    def __init__(self, stale: Sequence[int] = (), refused: int = 0, error: Exception | None = None) -> None:
        self.generation = 0
        self.calls: list[tuple[str, list[int]]] = []
        self.children: dict[int, list[int]] = {}
        self.outcomes: dict[int, object] = {}
        self._stale = stale
        self._refused = refused
        self._error = error

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        numbers = [one.fingerprint for one in tasks]
        if self._error is not None and self._refused in numbers:
            raise self._error
        self.calls.append(("put", numbers))
        return [Admission.NEW] * len(tasks)

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        for one in settlements:
            if self._error is not None and self._refused in [child.fingerprint for child in one.children]:
                raise self._error
        self.calls.append(("settle", [one.lease.token for one in settlements]))
        for one in settlements:
            self.children[one.lease.token] = [child.fingerprint for child in one.children]
            self.outcomes[one.lease.token] = one.outcome
        return [Settled.STALE if one.lease.token in self._stale else Settled.OK for one in settlements]


async def sent(writer: ResultWriter, frontier: Frontier, *pages: Settlement) -> None:
    writer.settlements.extend(pages)
    await writer.write(frontier)  # type: ignore[arg-type]


COMMON = tuple(range(1, MANY_SHARED + 1))


async def test_a_request_that_another_page_brought_meanwhile_is_not_sent_again() -> None:
    writer, frontier = ResultWriter("w"), Frontier()
    await sent(writer, frontier, page(1, 10, 11))
    await sent(writer, frontier, page(2, 10, 12))
    assert frontier.children == {1: [10, 11], 2: [12]}


async def test_requests_of_a_page_whose_lease_was_lost_are_not_known() -> None:
    writer, frontier = ResultWriter("w"), Frontier(stale=[1])
    await sent(writer, frontier, page(1, 10))
    await sent(writer, frontier, page(2, 10))
    assert frontier.children[2] == [10]
    assert writer.written.lost == 1


async def test_a_server_that_may_have_forgotten_gets_them_again() -> None:
    writer, frontier = ResultWriter("w"), Frontier()
    await sent(writer, frontier, page(1, 10))
    settle = frontier.settle

    async def failed_over(worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        frontier.generation += 1
        return await settle(worker, settlements)

    frontier.settle = failed_over  # type: ignore[method-assign]
    await sent(writer, frontier, page(2))
    await sent(writer, frontier, page(3, 10))
    assert frontier.children[3] == [10]


async def test_many_requests_that_several_pages_share_are_sent_once_and_before_them() -> None:
    writer, frontier = ResultWriter("w"), Frontier(stale=[1])
    await sent(writer, frontier, page(1, *COMMON, 500), page(2, *COMMON, 501))
    assert frontier.calls == [("put", list(COMMON)), ("settle", [1, 2])]
    assert frontier.children == {1: [500], 2: [501]}


async def test_a_server_that_forgot_the_shared_ones_gets_them_after_their_pages() -> None:
    writer, frontier = ResultWriter("w"), Frontier()
    settle = frontier.settle

    async def failed_over(worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        frontier.generation += 1
        return await settle(worker, settlements)

    frontier.settle = failed_over  # type: ignore[method-assign]
    await sent(writer, frontier, page(1, *COMMON), page(2, *COMMON))
    assert frontier.calls == [("put", list(COMMON)), ("settle", [1, 2]), ("put", list(COMMON))]


async def test_a_few_that_they_share_stay_with_each_page() -> None:
    writer, frontier = ResultWriter("w"), Frontier()
    await sent(writer, frontier, page(1, *COMMON[1:]), page(2, *COMMON[1:]))
    assert frontier.calls == [("settle", [1, 2])]
    assert frontier.children[1] == frontier.children[2] == list(COMMON[1:])


async def test_a_shared_request_that_is_refused_buries_its_pages_and_no_others() -> None:
    writer, frontier = ResultWriter("w"), Frontier(refused=7, error=ValueError("too long"))
    await sent(writer, frontier, page(1, *COMMON), page(2, *COMMON), page(3, 500))
    assert frontier.children == {1: [], 2: [], 3: [500]}
    assert [type(frontier.outcomes[token]) for token in (1, 2, 3)] == [Bury, Bury, Done]


async def test_nothing_is_settled_when_the_job_has_gone() -> None:
    writer, frontier = ResultWriter("w"), Frontier(refused=7, error=FrontierGone("the job is deleted"))
    with pytest.raises(FrontierGone):
        await sent(writer, frontier, page(1, *COMMON), page(2, *COMMON))
    assert frontier.calls == []

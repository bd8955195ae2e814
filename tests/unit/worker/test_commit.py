"""Group commit on virtual time: sink before frontier, nothing lost, backpressure."""

import asyncio

import msgspec
import pytest

from tests.unit.worker.fake_ports import Diary, DiaryFrontier, DiarySink, tools, until, visit
from trotline.errors import FrontierError, FrontierFileFails, FrontierUnreachable, SinkFileFails, SinkGone
from trotline.model.http_validator import Validator
from trotline.model.outcome import Done
from trotline.model.task import Task
from trotline.testing.virtual_time import run_virtual
from trotline.worker.commit import MOST_DEFECTS, Committer
from trotline.worker.finished_visit import without
from trotline.worker.worker_settings import WorkerPolicy

POLICY = WorkerPolicy(batch=4, backlog=8, commit_every=0.05)


class Bench:
    """A committer with its ports, run for one story."""

    def __init__(self, *, stale=(), sink_away=0, frontier_away=0, slow=0.0, refuse=()) -> None:
        self.diary: Diary = []
        self.sink = DiarySink(self.diary, away=sink_away, slow=slow, refuse=refuse)
        self.frontier = DiaryFrontier(self.diary, stale=stale, away=frontier_away)
        self.tools = tools(self.frontier, self.sink)

    def run(self, story):
        async def whole():
            self.committer = Committer("w", self.tools, POLICY, set())
            running = asyncio.create_task(self.committer.run())
            told = await story(self.committer)
            self.committer.close()
            await running
            return told

        return run_virtual(whole())


def child(name: str) -> Task:
    return Task(url=f"http://h.test/{name}", route="page", lane="h.test", fingerprint=hash(name) or 1)


def test_records_are_stored_before_their_lease_is_settled():
    bench = Bench()

    async def story(committer):
        for token in range(1, 20):
            committer.add(visit(token, records=[str(token)]))
            await asyncio.sleep(0.02)

    bench.run(story)

    stored: set[str] = set()
    for what, batch in bench.diary:
        if what == "store":
            stored |= set(batch)
        else:
            assert {str(token) for token in batch} <= stored
    assert len(bench.frontier.settled) == 19


def test_links_are_not_known_if_the_server_was_connected_to_anew_meanwhile():
    bench = Bench()

    async def story(committer):
        settle = bench.frontier.settle

        async def settle_on_a_new_connection(worker, settlements):
            bench.frontier.generation += 1
            return await settle(worker, settlements)

        bench.frontier.settle = settle_on_a_new_connection
        committer.add(visit(1, children=[child("forgotten")]))
        await asyncio.sleep(1)
        bench.frontier.settle = settle
        committer.add(visit(2, children=[child("kept")]))

    bench.run(story)

    assert hash("kept") in bench.tools.gate._known
    assert hash("forgotten") not in bench.tools.gate._known


def test_visits_without_records_are_settled_without_a_write():
    bench = Bench()

    async def story(committer):
        committer.add(visit(1))

    bench.run(story)

    assert bench.diary == [("settle", [1])]


def test_a_record_that_can_never_be_stored_is_reported_alone_and_its_page_is_settled():
    bench = Bench(refuse=["b2", "c1"])

    async def story(committer):
        committer.add(visit(1, records=["a1"]))
        committer.add(visit(2, records=["b1", "b2", "b3"]))
        committer.add(visit(3))
        committer.add(visit(4, records=["c1"]))

    bench.run(story)

    assert bench.diary == [("refuse", 2), ("store", ["a1", "b1", "b3"]), ("settle", [1, 2, 3, 4])]
    settled = bench.frontier.settled
    assert [len(settled[token].rejects) for token in (1, 2, 3, 4)] == [0, 1, 0, 1]
    assert settled[2].tallies["records"] == 2
    [reject] = settled[2].rejects
    assert (reject.kind, reject.why, reject.data) == ("page", "refused by the sink: key too long", '{"key":"b2"}')


def test_a_page_with_a_refused_record_is_not_vouched_for():
    good, bad = visit(1, records=["a"]), visit(2, records=["b"])
    seen = (7, Validator(etag='"x"'))
    batch = [msgspec.structs.replace(one, seen=seen) for one in (good, bad)]

    assert [one.seen for one in without(batch, {1: "too long"})] == [seen, None]


def test_when_all_records_are_refused_there_is_nothing_left_to_store():
    bench = Bench(refuse=["a"])

    async def story(committer):
        committer.add(visit(1, records=["a"]))

    bench.run(story)

    assert bench.diary == [("refuse", 1), ("settle", [1])]


def test_visits_that_finish_together_are_one_batch():
    bench = Bench()

    async def story(committer):
        for token in (1, 2, 3):
            committer.add(visit(token, records=[str(token)]))
        await asyncio.sleep(1)

    bench.run(story)

    assert bench.diary == [("store", ["1", "2", "3"]), ("settle", [1, 2, 3])]


def test_a_lonely_visit_waits_only_a_moment_for_company():
    bench = Bench()

    async def story(committer):
        committer.add(visit(1))
        await asyncio.sleep(POLICY.commit_every + 0.01)
        return list(bench.frontier.settled)

    assert bench.run(story) == [1]


def test_a_sink_that_fails_and_recovers_loses_nothing_and_says_why_it_waits():
    bench = Bench(sink_away=3)

    async def story(committer):
        committer.add(visit(1, records=["a"]))
        await asyncio.sleep(0.3)
        told, room = committer.held_back, committer.room.is_set()
        settled_meanwhile = list(bench.frontier.settled)
        await asyncio.sleep(60)
        return told, room, settled_meanwhile, committer.held_back, committer.room.is_set()

    told, room, settled_meanwhile, later, room_later = bench.run(story)

    assert told == "sink is unreachable: disk full"
    assert not room, "leasing stops while nothing can be stored"
    assert settled_meanwhile == []
    assert (later, room_later) == ("", True)
    assert bench.sink.rows == {"a"}
    assert list(bench.frontier.settled) == [1]


def test_a_frontier_that_is_away_gets_the_same_batch_again():
    bench = Bench(frontier_away=2)

    async def story(committer):
        committer.add(visit(1, records=["a"]))
        await asyncio.sleep(0.3)
        told = committer.held_back
        await asyncio.sleep(60)
        return told, committer.held_back

    assert bench.run(story) == ("frontier is unreachable: locked", "")
    assert list(bench.frontier.settled) == [1]


class Failing:
    """A port that answers every call with one error."""

    keeps_visits = False
    generation = 0

    def __init__(self, error):
        self.error = error

    async def write(self, batch, visits=()):
        raise self.error

    async def settle(self, worker, settlements):
        raise self.error


def _fail_with(error):
    """What a committer says before the end, when that came, and the error that was it."""
    bench = Bench()
    place = "sink" if "Sink" in type(error).__name__ else "frontier"
    failing = msgspec.structs.replace(bench.tools, **{place: Failing(error)})

    async def whole():
        committer = Committer("w", failing, POLICY, set())
        running = asyncio.create_task(committer.run())
        committer.add(visit(1, records=["a"]))
        await asyncio.sleep(61)
        told, loop = committer.held_back, asyncio.get_running_loop()
        await asyncio.wait([running], timeout=2 * 3600)
        lasted = loop.time()
        over = running.exception() if running.done() else None
        running.cancel()
        return told, lasted, over

    *told, over = run_virtual(whole())
    return (*told, over, bench)


@pytest.mark.parametrize("kind", [SinkFileFails, FrontierFileFails])
def test_a_file_that_cannot_be_written_is_waited_for_ten_minutes_and_the_views_count_down(kind):
    told, lasted, over, bench = _fail_with(kind("rows.db: the disk is full", hint="Free some space."))

    place = "sink" if kind is SinkFileFails else "frontier"
    assert told == f"{place} is unreachable: rows.db: the disk is full; the run ends in 9 min"
    assert 600 <= lasted <= 605
    assert isinstance(over, kind)
    assert over.what == "rows.db: the disk is full, and has been for 10 min (storage_patience)"
    assert over.hint == "Free some space."
    assert not bench.frontier.settled, "no page is buried for it"


def test_a_server_that_is_away_is_waited_for_without_end():
    told, _, over, _ = _fail_with(FrontierUnreachable("nobody listens there"))

    assert told == "frontier is unreachable: nobody listens there"
    assert over is None


def test_a_sink_that_is_gone_is_not_waited_for_and_no_page_is_buried_for_it():
    _, lasted, over, bench = _fail_with(SinkGone("rows.db was deleted"))

    assert isinstance(over, SinkGone)
    assert lasted <= 62
    assert not bench.frontier.settled


def test_waits_for_a_sink_grow_but_stay_bounded():
    bench = Bench(sink_away=40)

    async def story(committer):
        committer.add(visit(1, records=["a"]))
        return await until(lambda: bench.frontier.settled, 1.0)

    assert 40 * 3 / 4 < bench.run(story) < 40 * 3


def test_a_full_backlog_stops_leasing_until_it_shrinks():
    bench = Bench(slow=5.0)

    async def story(committer):
        for token in range(1, 60):
            committer.add(visit(token, records=[str(token)]))
        full = committer.room.is_set(), committer.held_back
        await asyncio.wait_for(committer.room.wait(), 600)
        return full, committer.held_back

    (room, told), later = bench.run(story)

    assert not room
    assert told == "sink is slow: 59 visits wait to be stored"
    assert later == ""
    assert len(bench.frontier.settled) == 59


def test_a_pages_links_are_known_only_after_its_settle_was_accepted():
    bench = Bench(stale=[2])

    async def story(committer):
        committer.add(visit(1, children=[child("accepted")]))
        committer.add(visit(2, children=[child("stale")]))
        await asyncio.sleep(0.01)
        before = bench.tools.gate.explain(child("accepted"), Task(url="http://h.test/", route="page")).verdict
        await asyncio.sleep(1)
        return before

    before = bench.run(story)
    parent = Task(url="http://h.test/", route="page")
    known = {name: bench.tools.gate._known.has_text("page", child(name).url) for name in ("accepted", "stale")}

    assert before == "admitted"
    assert known == {"accepted": True, "stale": False}
    assert bench.tools.gate.explain(child("stale"), parent).verdict == "admitted"
    assert bench.committer.stale == 1


def test_links_stay_unknown_while_the_frontier_is_away():
    bench = Bench(frontier_away=1000)

    async def story(committer):
        committer.add(visit(1, children=[child("a")]))
        await asyncio.sleep(30)
        known = bench.tools.gate._known.has_text("page", child("a").url)
        bench.frontier.away = 0
        await asyncio.sleep(60)
        return known, bench.tools.gate._known.has_text("page", child("a").url)

    assert bench.run(story) == (False, True)


def test_closing_stores_what_is_there():
    bench = Bench(slow=1.0)

    async def story(committer):
        for token in range(1, 40):
            committer.add(visit(token, records=[str(token)]))

    bench.run(story)

    assert len(bench.frontier.settled) == 39
    assert len(bench.sink.rows) == 39


def test_closing_an_idle_committer_ends_it():
    async def story(committer):
        await asyncio.sleep(10)

    bench = Bench()
    bench.run(story)

    assert bench.diary == []


class BrokenSink(DiarySink):
    """Meets a defect of its own with some records."""

    def __init__(self, diary, broken):
        super().__init__(diary)
        self.broken = set(broken)

    async def write(self, batch, visits=()):
        for record in batch:
            if record.key in self.broken:
                raise TypeError(f"cannot store {record.key}")
        await super().write(batch)


class BrokenFrontier(DiaryFrontier):
    """Meets a defect of its own, or an error that its server answers, with some leases that are to be done."""

    def __init__(self, diary, broken, error):
        super().__init__(diary)
        self.broken = set(broken)
        self.error = error

    async def settle(self, worker, settlements):
        if any(one.lease.token in self.broken and isinstance(one.outcome, Done) for one in settlements):
            raise self.error
        return await super().settle(worker, settlements)


class FailsAtFirst:
    """A port whose first calls raise an error that the port does not promise."""

    keeps_visits = False
    generation = 0

    def __init__(self, port, times):
        self.port = port
        self.times = times
        self.moments = []

    def _fail(self):
        self.moments.append(asyncio.get_running_loop().time())
        if len(self.moments) <= self.times:
            raise ConnectionResetError("Connection reset by peer")

    async def write(self, batch, visits=()):
        self._fail()
        await self.port.write(batch, visits)

    async def settle(self, worker, settlements):
        self._fail()
        return await self.port.settle(worker, settlements)


@pytest.mark.parametrize("place", ["sink", "frontier"])
@pytest.mark.parametrize(("visits", "times"), [(1, 1), (3, 1), (3, 2)])
def test_an_unexpected_error_that_passes_costs_no_page(place, visits, times):
    bench = Bench()
    failing = FailsAtFirst(getattr(bench, place), times)
    bench.tools = msgspec.structs.replace(bench.tools, **{place: failing})

    async def story(committer):
        for token in range(1, visits + 1):
            committer.add(visit(token, records=[str(token)]))

    bench.run(story)

    settled = bench.frontier.settled
    assert [Done()] * visits == [settled[token].outcome for token in range(1, visits + 1)]
    assert len(bench.sink.rows) == visits


@pytest.mark.parametrize("place", ["sink", "frontier"])
def test_a_visit_is_tried_once_more_after_a_short_pause_before_it_is_buried(place):
    bench = Bench()
    failing = FailsAtFirst(getattr(bench, place), 2)
    bench.tools = msgspec.structs.replace(bench.tools, **{place: failing})

    async def story(committer):
        committer.add(visit(1, records=["1"]))

    bench.run(story)

    assert bench.frontier.settled[1].outcome.why == "defect: ConnectionResetError: Connection reset by peer"
    first, second = failing.moments[:2]
    assert 0.1 <= second - first <= 1


def test_a_page_that_a_defect_keeps_from_being_stored_is_buried_alone():
    bench = Bench()
    bench.sink = BrokenSink(bench.diary, ["2", "5"])
    bench.tools = tools(bench.frontier, bench.sink)

    async def story(committer):
        for token in range(1, 9):
            committer.add(visit(token, records=[str(token)], children=[child(f"of {token}")]))

    bench.run(story)

    settled = bench.frontier.settled
    assert sorted(settled) == list(range(1, 9))
    assert bench.sink.rows == {"1", "3", "4", "6", "7", "8"}
    for token in (2, 5):
        assert settled[token].outcome.why == f"defect: TypeError: cannot store {token}"
        assert "in write" in settled[token].outcome.detail
        # Its links come back with the page, when it is revived.
        assert settled[token].children == ()
    assert all(settled[token].outcome == Done() and settled[token].children for token in (1, 3, 4, 6, 7, 8))


@pytest.mark.parametrize("error", [OverflowError("too large"), FrontierError("redis answered: too many results")])
def test_a_page_that_a_defect_keeps_from_being_settled_is_buried_alone(error):
    bench = Bench()
    bench.frontier = BrokenFrontier(bench.diary, [3], error)
    bench.tools = tools(bench.frontier, bench.sink)

    async def story(committer):
        for token in range(1, 7):
            committer.add(visit(token, records=[str(token)]))

    bench.run(story)

    settled = bench.frontier.settled
    assert sorted(settled) == list(range(1, 7))
    assert settled[3].outcome.why == f"defect: {type(error).__name__}: {error}"
    assert all(settled[token].outcome == Done() for token in (1, 2, 4, 5, 6))


def test_a_defect_of_every_page_is_not_the_pages_fault_and_buries_few_of_them():
    bench = Bench()
    bench.sink = BrokenSink(bench.diary, [str(token) for token in range(1, 1000)])
    bench.tools = tools(bench.frontier, bench.sink)

    async def story(committer):
        for token in range(1, 1000):
            committer.add(visit(token, records=[str(token)]))
        await asyncio.sleep(5)

    with pytest.raises(TypeError, match="cannot store"):
        bench.run(story)
    assert len(bench.frontier.settled) <= MOST_DEFECTS

"""F5, F9 and F10 as operators see them: who works, where a task is, and what is shown of both."""

from msgspec.structs import replace

from trotline.model.job import LaneView, State, TaskStatus, WorkerInfo, WorkerView
from trotline.model.lease import LaneFeedback, Settled, Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.pace import Pace
from trotline.model.verdict import Kind
from trotline.model.work_stats import Timing, WorkStats
from trotline.ports.frontier import DEAD_AFTER
from trotline.testing.frontier_contract.bench import (
    FAST,
    SHOP,
    Bench,
    Client,
    bury_one,
    end,
    finish,
    lane_view,
    lease_all,
    lease_one,
    steady,
    task,
    tasks,
)
from trotline.testing.frontier_contract.living import RESCUED_WITHIN

GRAIN = 0.01


async def workers(client: Client) -> dict[str, WorkerView]:
    return {view.name: view for view in await client.workers()}


async def all_lanes(client: Client) -> dict[str, LaneView]:
    views = [view async for page in client.all_lanes() for view in page]
    found = {view.lane: view for view in views}
    assert len(found) == len(views), "a lane that does not change comes once"
    return found


class WatchPromises:
    # Workers

    async def test_f5_operators_see_workers_their_leases_and_their_last_report(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        assert await operator.workers() == []
        await frontier.put(tasks(5))
        await frontier.lease("busy", 3)
        stats = WorkStats(uptime=9.5, cpu=1.25, received=2**40, visits={"ok": 3, "gone": 1}, fetch=Timing(0.5))
        about = WorkerInfo(
            host="tea",
            process=7,
            version="abc",
            slots=16,
            memory=2**33,
            held_back="the disk is full",
            memory_limit=2**34,
            cpu_cores=1.5,
            stats=stats,
        )
        await frontier.beat("idle", about)
        bench.jump(4)
        await frontier.beat("idle")

        seen = await workers(operator)

        assert {name: view.leased for name, view in seen.items()} == {"busy": 3, "idle": 0}
        assert (seen["idle"].about, seen["busy"].about) == (about, WorkerInfo()), "the last report is kept"
        assert abs(seen["idle"].silent_for) < GRAIN
        assert abs(seen["busy"].silent_for - 4) < GRAIN
        later = replace(about, held_back="")
        await frontier.beat("idle", later)
        assert (await workers(operator))["idle"].about == later

    async def test_f5_a_worker_that_was_silent_and_is_back_has_its_own_counts(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(3))
        await finish(frontier, "w", [await lease_one(frontier, "w")], Kind.OK)
        assert (await workers(operator))["w"].done == 1
        bench.jump(RESCUED_WITHIN)
        await lease_one(operator, "other")

        await frontier.beat("w", WorkerInfo(stats=WorkStats(uptime=60.0, done=1, failed=2)))
        await finish(frontier, "w", [await lease_one(frontier, "w")], Kind.OK)
        await frontier.beat("w", WorkerInfo(stats=WorkStats(uptime=65.0, done=2, failed=2)))

        back = (await workers(operator))["w"]
        assert (back.done, back.failed) == (2, 2)

    async def test_f5_whoever_left_or_was_rescued_is_no_longer_shown(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(2))
        await lease_one(frontier, "leaving")
        await lease_one(frontier, "dead")

        await frontier.leave("leaving")
        assert set(await workers(operator)) == {"dead"}
        bench.jump(DEAD_AFTER - 1)
        assert (await workers(operator))["dead"].leased == 1
        bench.jump(RESCUED_WITHIN - DEAD_AFTER + 1)
        await lease_all(frontier, "alive")

        assert {name: view.leased for name, view in (await workers(operator)).items()} == {"alive": 2}

    async def test_f10_a_workers_figures_are_counted_with_its_settles(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(6))
        a, b, c, d, e = await lease_all(frontier, "w", limit=5)
        other = await lease_one(frontier, "other")

        await frontier.settle("w", [Settlement(a, Done()), Settlement(a, Done()), Settlement(b, Retry(0, "503"))])
        await frontier.settle("w", [Settlement(c, Done("gone: 404")), Settlement(d, Bury("blocked: captcha"))])
        assert await end(frontier, "w", e, Snooze(9, "no proxy")) == Settled.OK
        assert await end(frontier, "w", e, Done()) == Settled.STALE
        await finish(frontier, "other", [other])

        seen = await workers(operator)
        assert (seen["w"].done, seen["w"].failed, seen["w"].leased) == (2, 2, 0)
        assert (seen["other"].done, seen["other"].failed) == (1, 0)

    # TaskStatus

    async def test_f10_every_task_is_somewhere(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        born = bench.now() - 60
        tea = task("https://shop.example/tea", parent="https://shop.example/list", created_at=born)
        assert await operator.whereabouts(tea) == TaskStatus(state="unknown")
        await frontier.put([tea])

        waiting = await operator.whereabouts(tea)
        assert (waiting.state, waiting.attempt, waiting.parent) == ("waiting", 0, "https://shop.example/list")
        assert abs(waiting.created_at - born) < 1
        held = await lease_one(frontier, "w")
        leased = await operator.whereabouts(tea)
        assert (leased.state, leased.worker, leased.parent) == ("leased", "w", "https://shop.example/list")
        await end(frontier, "w", held, Retry(30, "503"))
        delayed = await operator.whereabouts(tea)
        assert (delayed.state, delayed.attempt, delayed.worker) == ("delayed", 1, "")
        assert abs(delayed.due_in - 30) < GRAIN
        bench.jump(30)
        due = await operator.whereabouts(tea)
        assert (due.state, due.due_in) == ("waiting", 0.0)
        await bury_one(frontier, "w", "blocked: captcha")
        dead = await operator.whereabouts(tea)
        assert (dead.state, dead.why, dead.attempt) == ("dead", "blocked: captcha", 1)
        await operator.revive(why="blocked")
        risen = await operator.whereabouts(tea)
        assert (risen.state, risen.why, risen.attempt) == ("waiting", "", 0)
        await finish(frontier, "w", [await lease_one(frontier, "w")])

        assert (await operator.whereabouts(tea)).state == "ended"

    async def test_f10_one_of_many_tasks_is_found(self, bench: Bench) -> None:
        frontier = await bench.open()
        many = tasks(400)
        await frontier.put(many)
        held = await lease_all(frontier, "w", limit=150)

        assert (await frontier.whereabouts(many[399])).state == "waiting"
        assert (await frontier.whereabouts(held[77].task)).worker == "w"
        assert (await frontier.whereabouts(task("https://shop.example/other"))).state == "unknown"

    async def test_f7_a_task_that_moved_is_found_where_it_went(self, bench: Bench) -> None:
        frontier = await bench.open()
        first = task("https://a.example/", lane="a.example")
        await frontier.put([first])
        moved = task("https://b.example/there", lane="b.example")

        await end(frontier, "w", await lease_one(frontier, "w"), Snooze(0, "moved", moved))

        assert (await frontier.whereabouts(replace(first, lane="b.example"))).state == "waiting"

    async def test_f10_nobody_is_shown_a_secret(self, bench: Bench) -> None:
        frontier = await bench.open(steady(redact=("ticket",)))
        listing = "https://shop.example/list?ticket=hush&page=2"
        hidden = task(f"{listing}&n=1", parent=listing)
        await frontier.put([hidden])
        held = await lease_one(frontier, "w")
        ending = Settlement(held, Bury("gone: 404"), tallies={"links refused": 1}, examples={"links refused": listing})
        await frontier.settle("w", [ending])

        [grave] = await frontier.graves()
        shown = [grave.url, grave.parent, (await frontier.whereabouts(hidden)).parent]
        shown += (await frontier.progress()).examples.values()

        assert len(shown) == 4
        assert all("hush" not in text and "page=2" in text for text in shown), shown
        await frontier.revive(why="gone")
        assert (await lease_one(frontier, "w")).task == hidden, "the task itself keeps its URL"

    # Lanes

    async def test_f12_the_lanes_that_need_a_look_come_first(self, bench: Bench) -> None:
        frontier = await bench.open()
        for count, name in ((1, "held.example"), (3, "small.example"), (5, "large.example")):
            await frontier.put(tasks(count, lane=name))
        await frontier.steer(State.PAUSED, "held.example")

        views = await frontier.lanes()

        assert [(view.lane, view.waiting) for view in views] == [
            ("held.example", 1),
            ("large.example", 5),
            ("small.example", 3),
        ]
        assert await frontier.lanes(2) == views[:2]

    async def test_f10_all_lanes_are_seen_with_all_their_tasks(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        assert await all_lanes(operator) == {}
        many = [task(f"https://h{number}.example/", lane=f"h{number}.example") for number in range(2_500)]
        await frontier.put(many)
        await frontier.put(tasks(7, lane="large.example"))
        held = await lease_all(frontier, "w", limit=1_200)
        await finish(frontier, "w", held[:200])

        seen = await all_lanes(operator)

        waiting, leased = sum(view.waiting for view in seen.values()), sum(view.leased for view in seen.values())
        assert (waiting, leased) == (2_507 - 1_200, 1_000)
        still = {lease.task.lane for lease in held[200:]}
        ended = {lease.task.lane for lease in held[:200]} - still - {"large.example"}
        assert set(seen) == {one.lane for one in many} - ended | {"large.example"}
        assert {lane for lane, view in seen.items() if view.leased} == still
        assert {view.lane: view for view in await operator.lanes(10_000)} == seen

    async def test_f12_a_lane_without_tasks_that_is_held_is_seen(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.steer(State.PAUSED, "held.example")
        await frontier.steer(State.DRAINING, "drained.example")

        assert {lane: view.state for lane, view in (await all_lanes(frontier)).items()} == {
            "held.example": State.PAUSED,
            "drained.example": State.DRAINING,
        }

    async def test_c6_lanes_whose_tasks_wait_for_others_are_seen_once(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([task(f"https://a.example/{n}", lane="a.example", chain="one") for n in range(3)])
        [held] = await lease_all(frontier, "w")

        views = [view async for page in frontier.all_lanes() for view in page]

        assert [(view.lane, view.waiting, view.leased) for view in views] == [("a.example", 2, 1)]
        await finish(frontier, "w", [held])

    async def test_f13_a_lane_says_how_many_visits_it_allows_now(self, bench: Bench) -> None:
        frontier = await bench.open(steady(concurrency=3))
        await frontier.put(tasks(30))
        assert (await lane_view(frontier)).concurrency == 3
        await frontier.set_pace("shop.example", Pace(rate=FAST, concurrency=2, slowest=FAST))
        assert (await lane_view(frontier)).concurrency == 2

        for _ in range(10):
            await end(frontier, "w", await lease_one(frontier, "w"), Retry(0, "503"), LaneFeedback(Kind.BROKEN))

        assert (await lane_view(frontier)).concurrency == 1, "it is probed"

    async def test_f10_lanes_are_seen_by_their_names(self, bench: Bench) -> None:
        frontier, operator = await bench.open(steady(concurrency=3)), await bench.again()
        await frontier.put([*tasks(4), *tasks(2, lane="b.example"), *tasks(1, lane="c.example")])
        await lease_all(frontier, "w", 1)
        await operator.steer(State.PAUSED, "paused.example")
        everywhere = {view.lane: view for view in (await all_lanes(operator)).values()}
        names = ["b.example", SHOP, "none.example", "paused.example", SHOP]

        found = await operator.lane_views(names)

        assert sorted(view.lane for view in found) == sorted(["b.example", SHOP, "paused.example"])
        assert {view.lane: (view.waiting, view.leased, view.state) for view in found} == {
            name: (view.waiting, view.leased, view.state) for name, view in everywhere.items() if name in names
        }

    async def test_f16_a_lane_says_how_its_recent_visits_went(self, bench: Bench) -> None:
        frontier = await bench.open(steady(concurrency=3))
        await frontier.put(tasks(30))
        assert (await lane_view(frontier)).latency == 0.0

        await end(frontier, "w", await lease_one(frontier, "w"), Done(), LaneFeedback(Kind.OK, took=0.25))
        good = await lane_view(frontier)
        await end(frontier, "w", await lease_one(frontier, "w"), Retry(0, "503"), LaneFeedback(Kind.BROKEN))
        bad = await lane_view(frontier)

        assert (good.latency, good.trouble) == (0.25, 0.0)
        assert 0.0 < bad.trouble < 1.0

    async def test_f18_a_lane_allows_one_visit_until_its_robots_txt_is_known(self, bench: Bench) -> None:
        frontier = await bench.open(steady(concurrency=3, robots=True))
        await frontier.put(tasks(3))
        assert (await lane_view(frontier)).concurrency == 1

        await end(frontier, "w", await lease_one(frontier, "w"), Done(), LaneFeedback(Kind.OK, robots=True))

        assert (await lane_view(frontier)).concurrency == 3

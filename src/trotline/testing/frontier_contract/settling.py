"""F6, F8 and F9: how a lease ends, who may end it, and what the graveyard keeps."""

from msgspec.structs import replace

from trotline.model.job import State
from trotline.model.lease import LaneFeedback, Reject, Settled, Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract.bench import (
    Bench,
    bury_one,
    end,
    finish,
    lane_view,
    lease_all,
    lease_one,
    live_on,
    task,
    tasks,
    urls,
)


class SettlePromises:
    async def test_f6_a_stale_token_is_refused_and_changes_nothing(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(2))
        old = await lease_one(frontier, "slow")
        bench.jump(20)
        current = await lease_one(other, "second"), await lease_one(other, "second")
        before = await frontier.progress()

        for outcome in (Done(), Retry(0, "503"), Snooze(0, "later"), Bury("broken: 500")):
            late = Settlement(
                old,
                outcome,
                children=(task("https://shop.example/child"),),
                rejects=(Reject("product", "no price", "{}"),),
                news=LaneFeedback(Kind.THROTTLED, rest=3600),
            )
            assert await frontier.settle("slow", [late]) == [Settled.STALE]

        assert await frontier.progress() == before
        assert await frontier.graves() == []
        assert (await lane_view(frontier)).rests_for == 0
        assert await frontier.lease("third", 10) == [], "the child was not admitted and the lease is not ended"
        await finish(other, "second", current)

    async def test_f6_settling_twice_is_refused_the_second_time(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        lease = await lease_one(frontier, "w")

        assert await end(frontier, "w", lease, Done()) == Settled.OK
        assert await end(frontier, "w", lease, Bury("broken: 500")) == Settled.STALE

        progress = await frontier.progress()
        assert (progress.done, progress.dead) == (1, 0)

    async def test_f6_settling_twice_in_one_batch_counts_once(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        lease = await lease_one(frontier, "w")

        answers = await frontier.settle("w", [Settlement(lease, Done()), Settlement(lease, Bury("broken: 500"))])

        assert answers == [Settled.OK, Settled.STALE]
        progress = await frontier.progress()
        assert (progress.done, progress.dead) == (1, 0)

    async def test_f6_any_other_number_is_refused(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(2))
        mine, yours = await lease_one(frontier, "w"), await lease_one(frontier, "v")

        for token in (mine.token + 1000, 0, -1, yours.token):
            assert await end(frontier, "w", replace(mine, token=token), Done()) == Settled.STALE

        await finish(frontier, "w", [mine])
        await finish(frontier, "v", [yours])

    async def test_f6_a_token_from_before_a_retry_or_a_snooze_is_stale(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        first = await lease_one(frontier, "w")
        await end(frontier, "w", first, Retry(0, "503"))
        second = await lease_one(frontier, "w")
        await end(frontier, "w", second, Snooze(0, "no proxy"))
        third = await lease_one(frontier, "w")

        assert await end(frontier, "w", first, Done()) == Settled.STALE
        assert await end(frontier, "w", second, Done()) == Settled.STALE
        await finish(frontier, "w", [third])

    async def test_f6_a_batch_may_mix_good_and_stale_and_answers_in_order(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(4))
        a, b, c, d = await lease_all(frontier, "w")
        await finish(frontier, "w", [b])
        child = task("https://shop.example/child")

        answers = await frontier.settle(
            "w",
            [
                Settlement(a, Done()),
                Settlement(b, Done(), children=(task("https://shop.example/never"),)),
                Settlement(c, Bury("gone: 404")),
                Settlement(d, Done(), children=(child,)),
            ],
        )

        assert answers == [Settled.OK, Settled.STALE, Settled.OK, Settled.OK]
        assert urls(await lease_all(frontier, "w")) == [child.url]
        progress = await frontier.progress()
        assert (progress.done, progress.dead, progress.leased) == (3, 1, 1)

    async def test_f6_an_empty_settle_is_harmless(self, bench: Bench) -> None:
        frontier = await bench.open()

        assert await frontier.settle("w", []) == []

    async def test_f8_a_snooze_costs_no_attempt(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        for _ in range(5):
            lease = await lease_one(frontier, "w")
            assert lease.task.attempt == 0

            await end(frontier, "w", lease, Snooze(30, "no proxy free"))

            bench.jump(29)
            assert await frontier.lease("w", 1) == [], "not due yet"
            bench.jump(1)

    async def test_f8_a_retry_costs_one_attempt_and_the_frontier_never_gives_up_by_itself(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([task("https://shop.example/tea", retries=2)])
        for attempt in range(6):
            lease = await lease_one(frontier, "w")
            assert lease.task.attempt == attempt

            await end(frontier, "w", lease, Retry(30, "503"))

            bench.jump(29)
            assert await frontier.lease("w", 1) == [], "not due yet"
            bench.jump(1)

    async def test_f8_a_snooze_may_replace_the_task_and_move_it_to_another_lane(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1, lane="old.example"))
        lease = await lease_one(frontier, "w")
        moved = replace(lease.task, url="https://new.example/0", lane="new.example", hops=1, meta={"from": "old"})

        await end(frontier, "w", lease, Snooze(0, "moved", moved))
        await frontier.steer(State.PAUSED, "old.example")
        again = await lease_one(frontier, "w")

        assert again.task == moved
        assert {view.lane: view.leased for view in await frontier.lanes() if view.leased} == {"new.example": 1}
        await finish(frontier, "w", [again])

    async def test_f8_a_snooze_may_outlast_any_worker(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        await end(frontier, "w", await lease_one(frontier, "w"), Snooze(7200, "lane rests"))

        await live_on(bench, frontier, 60, "other")
        bench.jump(7100)
        assert await frontier.lease("other", 1) == []
        bench.jump(100)

        assert (await lease_one(frontier, "other")).task.attempt == 0

    async def test_f9_a_buried_task_keeps_its_reason(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put([task("https://shop.example/tea", "product", parent="https://shop.example/")])
        lease = await bury_one(frontier, "w", "blocked: captcha", "server: guard")

        [grave] = await operator.graves()

        assert (grave.id, grave.url, grave.route) == (lease.task.id, "https://shop.example/tea", "product")
        assert (grave.why, grave.detail) == ("blocked: captcha", "server: guard")
        assert (grave.lane, grave.parent, grave.record) == ("shop.example", "https://shop.example/", "")
        assert abs(grave.died_at - bench.now()) < 5
        assert await operator.reasons() == {"blocked: captcha": 1}

    async def test_f9_the_graveyard_is_read_oldest_first_in_pages_and_by_reason(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(7))
        for number in range(7):
            await bury_one(frontier, "w", f"broken: {500 + number % 2}")
            bench.jump(1)

        first = await frontier.graves(limit=3)
        second = await frontier.graves(limit=3, after=first[-1].id)
        third = await frontier.graves(limit=3, after=second[-1].id)

        assert [grave.url for grave in first + second + third] == [each.url for each in tasks(7)]
        assert [grave.why for grave in await frontier.graves("broken: 501")] == ["broken: 501"] * 3
        assert await frontier.graves("blocked") == []
        assert await frontier.reasons() == {"broken: 500": 4, "broken: 501": 3}

    async def test_f9_a_reason_is_matched_as_text_not_as_a_pattern(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(3))
        for why in ("odd: 100% [a]*", "odd: 100x", "even_1"):
            await bury_one(frontier, "w", why)

        assert [grave.why for grave in await frontier.graves("odd: 100%")] == ["odd: 100% [a]*"]
        assert await frontier.graves("even-") == await frontier.graves("%") == []
        assert await frontier.revive(why="odd: 100%") == 1

    async def test_f9_reviving_gives_a_fresh_start(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(1))
        await end(frontier, "w", await lease_one(frontier, "w"), Retry(0, "503"))
        old = await bury_one(frontier, "w", "broken: 503")

        assert await operator.revive(ids=[old.task.id]) == 1

        again = await lease_one(frontier, "w")
        assert (again.task.url, again.task.attempt) == (old.task.url, 0)
        assert await end(frontier, "w", old, Done()) == Settled.STALE
        assert await operator.graves() == []
        await finish(frontier, "w", [again])

    async def test_f9_a_revived_page_needs_two_kills_again(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        for worker in ("w1", "w2"):
            await frontier.leave(worker, guilty=(await lease_one(frontier, worker)).token)
        assert await frontier.revive(why="killed") == 1

        await frontier.leave("w3", guilty=(await lease_one(frontier, "w3")).token)

        assert (await frontier.progress()).waiting == 1

    async def test_f9_reviving_takes_only_what_was_named(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(5))
        names = [
            (await bury_one(frontier, "w", why)).task.id
            for why in ("blocked: 403", "blocked: captcha", "broken: 500", "gone")
        ]
        running = await lease_one(frontier, "w")

        assert await frontier.revive(ids=["0000000000000000", running.task.id]) == 0
        assert await frontier.revive(why="blocked") == 2
        assert await frontier.revive(why="blocked") == 0
        assert await frontier.revive(ids=names) == 2
        assert await frontier.revive() == 0

        progress = await frontier.progress()
        assert (progress.waiting, progress.leased, progress.dead) == (4, 1, 0)

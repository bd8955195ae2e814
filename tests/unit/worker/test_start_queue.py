"""Leases that wait for their moment, on virtual time."""

import asyncio
import random

import msgspec
import pytest

from tests.unit.worker.fake_ports import lease, now
from trotline.testing.virtual_time import run_virtual
from trotline.worker.start_queue import StartQueue


async def arrivals(queue: StartQueue, count: int) -> list[tuple[int, float]]:
    came = []
    for _ in range(count):
        one, _ = await queue.next()
        came.append((one.token, now()))
    return came


def test_a_lease_starts_at_its_moment_and_not_before():
    async def story():
        queue = StartQueue()
        began = now()
        queue.add([lease(1, start_in=0.7), lease(2, start_in=0.2), lease(3)])
        return [(token, at - began) for token, at in await arrivals(queue, 3)]

    came = run_virtual(story())

    assert [token for token, _ in came] == [3, 2, 1]
    for (_, at), moment in zip(came, (0.0, 0.2, 0.7), strict=True):
        assert moment <= at <= moment + 0.001


def test_a_sooner_lease_that_arrives_later_goes_first():
    async def story():
        queue = StartQueue()
        queue.add([lease(1, start_in=0.9)])
        await asyncio.sleep(0.1)
        queue.add([lease(2, start_in=0.3)])
        return [token for token, _ in await arrivals(queue, 2)]

    assert run_virtual(story()) == [2, 1]


def test_moments_count_from_the_arrival_of_the_lease():
    async def story():
        await asyncio.sleep(5.0)
        queue = StartQueue()
        queue.add([lease(1, start_in=0.5, slack=0.25)])
        _, latest = await queue.next()
        return now(), latest

    at, latest = run_virtual(story())

    assert at == pytest.approx(5.5, abs=0.001)
    assert latest == pytest.approx(5.75, abs=0.001)


def test_leases_of_one_moment_keep_their_order():
    async def story():
        queue = StartQueue()
        queue.add([lease(token, start_in=0.5) for token in range(1, 20)])
        return [token for token, _ in await arrivals(queue, 19)]

    assert run_virtual(story()) == list(range(1, 20))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_arrives_when_nothing_is_lost_and_nothing_is_early(seed):
    chance = random.Random(seed)

    async def story():
        queue = StartQueue()
        due: dict[int, float] = {}
        came: dict[int, float] = {}

        async def take() -> None:
            while True:
                one, _ = await queue.next()
                came[one.token] = now()

        taking = asyncio.create_task(take())
        for token in range(1, 60):
            start_in = chance.choice([0.0, chance.uniform(0, 1)])
            due[token] = now() + start_in
            queue.add([lease(token, start_in=start_in)])
            await asyncio.sleep(chance.choice([0.0, chance.uniform(0, 0.3)]))
        await asyncio.sleep(2)
        taking.cancel()
        return due, came

    due, came = run_virtual(story())

    assert due.keys() == came.keys()
    assert all(0 <= came[token] - moment < 0.01 for token, moment in due.items())


def test_the_length_counts_those_that_wait_and_those_that_are_ready():
    async def story():
        queue = StartQueue()
        queue.add([lease(1), lease(2, start_in=1.0)])
        return len(queue)

    assert run_virtual(story()) == 2


def test_cleared_leases_never_start():
    async def story():
        queue = StartQueue()
        queue.add([lease(1), lease(2, start_in=0.2)])
        forgotten = queue.clear()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.next(), 10)
        queue.add([lease(3, start_in=0.1)])
        return [each.token for each in forgotten], len(queue), (await queue.next())[0].token

    assert run_virtual(story()) == ([1, 2], 1, 3)


# Replies that were long under way


def latest_after(*replies: tuple[float, ...], start_in: float = 0.0) -> float:
    """How late the last lease may start, seen from its arrival. A reply: when the frontier leased, when it arrived,
    and when it was asked for: at 0, unless it says so. The frontier's clock is 5000 s ahead of ours."""

    async def story():
        queue = StartQueue()
        for token, (leased, arrived, *asked) in enumerate(replies, 1):
            await asyncio.sleep(arrived - now())
            one = lease(token, start_in=start_in, slack=0.25)
            queue.add([msgspec.structs.replace(one, leased_at=5000.0 + leased, asked_at=sum(asked))])
            _, latest = await queue.next()
            left = latest - now()
        return left

    return run_virtual(story())


def test_a_reply_that_came_at_once_leaves_the_whole_slack():
    assert latest_after((0.0, 0.0)) == pytest.approx(0.25, abs=0.001)


def test_what_a_reply_was_under_way_is_taken_from_its_slack():
    assert latest_after((1.0, 1.0, 1.0), (2.0, 2.1, 2.0)) == pytest.approx(0.15, abs=0.001)


def test_a_process_that_was_frozen_finds_its_moments_passed():
    assert latest_after((1.0, 1.0), (2.0, 16.0)) < 0


def test_waiting_for_work_is_not_being_under_way():
    assert latest_after((1.0, 1.01, 1.0), (9.0, 9.01, 2.0)) == pytest.approx(0.25, abs=0.001)


def test_a_first_reply_after_much_waiting_counts_from_the_question_that_it_answers():
    assert latest_after((9.0, 9.01, 8.99)) == pytest.approx(0.23, abs=0.001)


def test_servers_whose_clocks_differ_are_no_later_than_their_replies_were_under_way():
    assert latest_after((9.0, 9.01, 9.0), (6.0, 9.03, 9.01)) == pytest.approx(0.23, abs=0.001)


def test_leases_of_several_replies_each_have_their_own_measure():
    async def story():
        await asyncio.sleep(10)
        queue = StartQueue()
        fresh = msgspec.structs.replace(lease(1), asked_at=10.0)
        queue.add([fresh, msgspec.structs.replace(lease(2), asked_at=1.0, leased_at=fresh.leased_at - 9)])
        return [latest - now() for _, latest in (await queue.next(), await queue.next())]

    fresh, stale = run_virtual(story())
    assert fresh == pytest.approx(0.25, abs=0.001)
    assert stale == pytest.approx(0.25 - 9, abs=0.001)


def test_all_replies_of_one_batch_are_late_when_the_process_was_frozen_before_it_had_any_measure():
    async def story():
        await asyncio.sleep(14)
        queue = StartQueue()
        asked = [0.0, 0.02, 0.04]
        queue.add([msgspec.structs.replace(lease(1), asked_at=each, leased_at=5000.0 + each) for each in asked])
        return [(await queue.next())[1] - now() for _ in asked]

    assert max(run_virtual(story())) < -13


def test_a_reply_that_was_long_under_way_is_no_measure_for_the_next():
    assert latest_after((0.0, 14.0), (20.0, 25.0, 20.0)) < 0
    assert latest_after((0.0, 14.0), (20.0, 25.0, 20.0), (30.0, 30.01, 30.0)) == pytest.approx(0.25, abs=0.02)


def test_two_slow_replies_are_both_late():
    assert latest_after((0.0, 0.86), (1.0, 1.48, 1.0)) < 0


def test_a_frontier_that_is_always_far_away_is_used_in_the_end():
    slow = [(float(number), number + 0.6, float(number)) for number in range(12)]

    assert latest_after(*slow[:8]) < 0
    assert latest_after(*slow) == pytest.approx(0.25, abs=0.001)
    assert latest_after(*slow, (12.0, 12.9, 12.0)) < 0


def test_a_process_that_is_suspended_again_and_again_is_late_each_time():
    frozen = [(float(number), number + 9.0, float(number)) for number in range(0, 200, 10)]

    assert latest_after(*frozen) < -6


def test_a_first_reply_has_no_measure_and_counts_from_the_question():
    assert latest_after((0.0, 14.0)) < 0
    assert latest_after((0.05, 0.1)) == pytest.approx(0.15, abs=0.001)


def test_a_frontier_whose_clock_was_set_back_looks_late_for_a_while_only():
    steady = [(number / 10, number / 10, number / 10 - 0.1) for number in range(1, 100)]
    set_back = [(leased - 3600, arrived + 10, asked + 10) for leased, arrived, asked in steady]

    assert latest_after(*steady, *set_back) == pytest.approx(0.25, abs=0.001)


def test_leases_of_a_lane_that_did_not_start_can_be_taken_back():
    def of(lane: str, token: int, start_in: float):
        one = lease(token, start_in=start_in)
        return msgspec.structs.replace(one, task=msgspec.structs.replace(one.task, lane=lane))

    async def story():
        queue = StartQueue()
        queue.add([of("a", 1, 0.0), of("b", 2, 0.0), of("a", 3, 0.4), of("b", 4, 0.5), of("a", 5, 0.6)])
        taken = sorted(one.token for one in queue.take("a"))
        return taken, len(queue), [token for token, _ in await arrivals(queue, 2)]

    assert run_virtual(story()) == ([1, 3, 5], 2, [2, 4])

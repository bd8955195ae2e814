"""The limit is named, and one more worker gives what the figures say."""

import pytest
from msgspec.structs import replace

from tests.unit.rules.advice_figures import lane, progress, summary
from trotline.model.job import State
from trotline.model.proxy_pool import PoolRules
from trotline.model.server_load import ServerUse
from trotline.rules.advice import Advice, advise, scale
from trotline.rules.fleet_rates import HostsUse
from trotline.rules.pool_supply import PoolSupply
from trotline.rules.survey_note import JobSummary

MANY = [lane(f"h{number}.example") for number in range(20)]
IDLE = {"busy": 0.1, "start": 0.5, "no_lease": 0.4}
FULL = {"busy": 1.0}


def told(found: Advice) -> tuple[str, int | None]:
    """The limit, and the gain in percent."""
    return found.limit, None if found.gain is None else round(100 * found.gain)


def test_one_lane_at_its_pace_gains_nothing_and_the_sentence_says_why():
    advice = advise(progress(), summary([lane(interval=0.5)], rate=2.0, **IDLE))

    assert told(advice) == ("pace", 0)
    assert advice.sentence == "one more worker gives +0 %: shop.example is at its limit of 2/s"
    assert advice.wanted_workers == 1


def test_busy_slots_gain_one_part_of_the_crew():
    advice = advise(progress(), summary(MANY, 3, rate=20.0, **FULL))

    assert told(advice) == ("slots", 33)
    assert "24 slots" in advice.sentence


def test_a_full_processor_is_named_although_slots_are_full_too():
    assert told(advise(progress(), summary(MANY, 3, rate=40.0, cpu=0.97, **FULL))) == ("cpu", 33)


def test_a_processor_that_others_use_too_gives_less():
    advice = advise(progress(), summary(MANY, 1, rate=40.0, cpu=0.5, waited=0.45, cpu_cores=2.0, **FULL))

    assert advice.limit == "cpu"
    assert advice.gain is not None and 0.4 < advice.gain < 0.7


def test_processors_of_the_hosts_that_are_all_used_ask_for_a_machine():
    advice = advise(progress(), summary(MANY, 2, rate=40.0, cpu=0.99, cpu_cores=2.0, **FULL))

    assert told(advice) == ("hosts", 1)
    assert advice.more_machines and "one more machine" in advice.sentence


def test_proxies_bound_what_their_lanes_allow():
    pool = PoolSupply(name="dc", members=10, rules=PoolRules(member_interval=1 / 3))
    lanes = [lane(f"h{number}.example via dc") for number in range(20)]

    assert told(advise(progress(), summary(lanes, 2, pools=(pool,), rate=15.0, **IDLE))) == ("proxies", 0)


def test_lanes_beside_a_pool_go_on():
    pool = PoolSupply(name="dc", members=1, rules=PoolRules(member_interval=1.0))
    lanes = [lane("a.example via dc"), lane("b.example", interval=0.1)]

    advice = advise(progress(), summary(lanes, 1, pools=(pool,), rate=10.0, **FULL))

    assert advice.limits[0].name == "slots"
    assert next(each for each in advice.limits if each.name == "proxies").per_second == pytest.approx(11.0)


def test_one_account_is_named_whatever_its_lanes_would_allow():
    lanes = [lane("shop.example via @buyers")]
    pool = PoolSupply(name="@buyers", members=1, rules=PoolRules(member_concurrency=1))

    assert told(advise(progress(), summary(lanes, 1, pools=(pool,), rate=5.0, **IDLE))) == ("sessions", 0)


def test_one_chain_is_named():
    assert told(advise(progress(), summary(MANY, 1, chains=1, rate=5.0, leased=1, **IDLE))) == ("chains", 0)


def test_lanes_that_all_rest_after_failures_are_named_whatever_was_measured_before():
    down = {"rests_for": 27.0, "why": "20 failures in a row", "trouble": 0.9}
    lanes = [lane("a.example", **down | {"rests_for": 80.0}), lane("b.example", **down), lane("c.example", waiting=0)]
    for rate in (0.01, 2.0):
        found = advise(progress(), summary(lanes, rate=rate, **IDLE))
        assert told(found) == ("rest", 0)
        assert found.sentence == "all 2 lanes with tasks rest: 20 failures in a row at b.example; next attempt in 27 s"
        assert found.explained
    one_works = [*lanes, lane("d.example", interval=0.5)]
    assert "rest:" not in advise(progress(), summary(one_works, rate=2.0, **IDLE)).sentence
    finds_its_rate = [lane(rests_for=2.0, why="rate limited")]
    assert "rest:" not in advise(progress(), summary(finds_its_rate, rate=2.0, **IDLE)).sentence


def test_an_outage_is_named_and_not_the_figures_from_before_it():
    away = "sink is unreachable: connection refused (3 of 3 workers)"
    found = advise(progress(), summary(MANY, 3, rate=20.0, **FULL), away)
    assert (found.sentence, found.limits, found.wanted_workers) == (f"held back: {away}", (), None)


def test_the_retry_budget_is_named_when_only_retries_are_left():
    lanes = [lane(waiting=60, retry_credit=0.2, trouble=0.9), lane("calm.example", waiting=0)]
    found = advise(progress(), summary(lanes, rate=0.2, busy=0.1, no_lease=0.9))
    assert found.limit == "retries"
    assert "retries of shop.example are capped at one per 10 s while most visits fail; 60 tasks wait" in found.sentence
    assert found.gain == 0.0


def test_a_lane_without_a_free_place_is_named():
    lanes = [lane(leased=8, concurrency=8, interval=0.01)]

    assert told(advise(progress(), summary(lanes, 1, rate=5.0, **IDLE))) == ("concurrency", 0)


@pytest.mark.parametrize(("role", "name"), [("frontier", "frontier"), ("database", "database")])
def test_a_server_that_is_always_busy_gives_nothing(role: str, name: str):
    server = ServerUse(role=role, kind="any", share=1.0)

    assert told(advise(progress(), summary(MANY, 2, servers=(server,), rate=20.0, busy=0.3, sink=0.7))) == (name, 0)


def test_a_store_with_one_writer_is_as_busy_as_its_writers():
    server = ServerUse(role="database", kind="sqlite", serial=True)

    advice = advise(progress(), summary(MANY, 2, servers=(server,), rate=20.0, busy=0.3, sink=0.7, store=0.95))

    assert told(advice) == ("database", 0)


def test_a_slow_archive_is_named_and_not_the_store_beside_it():
    server = ServerUse(role="database", kind="sqlite", serial=True)
    figures = {"servers": (server,), "rate": 5.0, "store": 0.02, "archive": 0.95}
    full = [lane(leased=8, concurrency=8, interval=0.01)]

    held_back = advise(progress(), summary(MANY, 2, busy=0.3, sink=0.7, **figures))
    places_held = advise(progress(), summary(full, 2, **figures, **IDLE))

    assert (held_back.limit, places_held.limit) == ("archive", "archive")
    assert "the archive is slow: workers wait for it for 95% of the time" in held_back.sentence


def test_an_archive_that_does_not_answer_is_named_though_no_page_was_finished():
    stands = {"rate": 0.01, "busy": 0.0, "sink": 1.0}

    archive = advise(progress(), summary(MANY, 2, archive=1.0, **stands))
    sink = advise(progress(), summary(MANY, 2, store=1.0, **stands))

    assert told(archive) == ("archive", 0)
    assert told(sink) == ("commits", 0)


def test_a_broker_that_is_down_is_the_limit_when_no_task_is_at_hand():
    down = "broker is unreachable: connection refused"
    fine = summary([lane(interval=0.5)], rate=2.0, **IDLE)

    assert advise(progress(broker=down, leased=0), fine).sentence == f"held back: {down}"
    assert advise(progress(broker=down), fine).limit == "pace"


def test_a_server_that_does_not_say_is_not_a_limit():
    servers = (ServerUse(role="database", kind="any"), ServerUse(role="frontier", kind="any"))

    advice = advise(progress(), summary(MANY, 2, servers=servers, rate=20.0, **FULL))

    assert told(advice) == ("slots", 50)
    assert not {"database", "frontier"} & {each.name for each in advice.limits}


def test_a_full_network_gives_nothing():
    hosts = HostsUse(hosts=1, network=0.99)

    assert told(advise(progress(), summary(MANY, 2, hosts=hosts, rate=7.0, **FULL))) == ("network", 1)


def test_full_memory_asks_for_a_machine():
    hosts = HostsUse(hosts=1, room=0)

    advice = advise(progress(), summary(MANY, 3, hosts=hosts, rate=20.0, **FULL))

    assert told(advice) == ("slots", 33)
    assert advice.more_machines and "one more machine" in advice.sentence
    assert advice.wanted_workers == 3


def test_idle_slots_that_nothing_explains_are_not_explained():
    advice = advise(progress(), summary(MANY, 2, rate=20.0, **IDLE))

    assert told(advice) == ("not explained", None)
    assert advice.wanted_workers is None and not advice.explained


def test_few_waiting_tasks_are_the_limit():
    advice = advise(progress(waiting=4), summary([lane(waiting=4)], 2, rate=20.0, **IDLE))

    assert told(advice) == ("work", 0)


def test_what_is_not_measured_is_unknown_and_not_zero():
    advice = advise(progress(), JobSummary())

    assert (advice.limit, advice.gain, advice.wanted_workers, advice.pages_per_second) == ("unknown", None, None, None)
    assert scale(advice).wanted_workers is None


@pytest.mark.parametrize("known", [JobSummary(), summary(MANY, 2, rate=20.0, **FULL)])
def test_a_job_that_nobody_works_on_wants_its_first_worker(known: JobSummary):
    found = advise(progress(waiting=5, leased=0), known, workers=0)

    assert (found.limit, found.wanted_workers, found.gain) == ("no worker", 1, None)
    assert scale(found).wanted_workers == 1


def test_without_a_worker_nothing_is_wanted_for_tasks_that_may_not_start():
    resting = summary([lane(rests_for=80.0, why="20 failures in a row", trouble=0.9)], rate=2.0, **IDLE)
    paused = summary([lane(state=State.PAUSED)], rate=2.0, **IDLE)
    for now, known in (
        (progress(waiting=5, leased=0, delayed=5), JobSummary()),
        (progress(waiting=0, leased=0), JobSummary()),
        (progress(), resting),
        (progress(), paused),
    ):
        assert advise(now, known, workers=0).limit != "no worker"
    assert advise(progress(finished_at=900.0), JobSummary(), workers=0).wanted_workers == 0
    assert advise(progress(state=State.PAUSED), JobSummary(), workers=0).wanted_workers == 0


def test_a_slow_lane_is_known_to_be_slow():
    advice = advise(progress(), summary([lane(interval=3600.0)], 1, rate=0.03, **IDLE))

    assert told(advice) == ("pace", 0)
    assert "1/h" in advice.sentence


@pytest.mark.parametrize("more", [{"finished_at": 900.0}, {"state": State.PAUSED}, {"state": State.CANCELLED}])
def test_a_job_without_work_wants_no_worker(more: dict[str, object]):
    advice = advise(progress(**more), summary(MANY, 2, rate=20.0, **FULL))

    assert (advice.wanted_workers, advice.gain, advice.limit) == (0, 0.0, "nothing")


def test_as_many_workers_as_the_limit_feeds_are_worth_having():
    lanes = [lane(f"h{number}.example", interval=0.1) for number in range(10)]

    advice = advise(progress(), summary(lanes, 2, rate=10.0, **FULL))

    assert advice.wanted_workers == 10
    assert scale(advice).admissible_per_second == 100.0
    assert scale(advice).limit == "slots"


def test_too_many_workers_are_told_to_be_fewer():
    advice = advise(progress(), summary([lane(interval=0.1)], 5, rate=2.0, busy=0.2, no_lease=0.8))

    assert (advice.limit, advice.wanted_workers) == ("pace", 1)


def test_old_figures_of_another_crew_do_not_count():
    now = summary(MANY, 3, rate=20.0, **FULL)
    before = summary(MANY, 1, rate=5.0, **IDLE)
    both = replace(now, steps=(*(replace(each, at=960.0) for each in before.steps), *now.steps))

    assert advise(progress(), both) == advise(progress(), now)


@pytest.mark.parametrize(("workers", "gain"), [(1, 100), (4, 25)])
def test_slots_that_are_busy_with_slow_pages_are_the_limit_although_hardly_a_page_is_finished(workers: int, gain: int):
    """As with `--slots 1` and pages that take seconds."""
    advice = advise(progress(), summary(MANY, workers, rate=0.02, **FULL))

    assert told(advice) == ("slots", gain)
    assert "busy, with pages that take long" in advice.sentence
    assert advice.wanted_workers == workers + 1


def test_slow_pages_at_a_lane_that_allows_few_are_no_reason_for_more_workers():
    advice = advise(progress(), summary([lane(interval=60.0)], rate=0.01, **FULL))

    assert told(advice) == ("unknown", None)
    assert "measure for longer" in advice.sentence

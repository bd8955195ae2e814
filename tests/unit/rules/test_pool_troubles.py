"""Why tasks with a proxy pool wait, in one sentence; and what a job did through its pools."""

from typing import Any

import pytest

from trotline.cli.pool_view import use_line
from trotline.model.job import LaneView, State, WorkerInfo, WorkerView
from trotline.model.proxy_pool import LanePoolView, MemberResult
from trotline.rules.pool_tallies import PoolUse, size_tally, tally, uses
from trotline.rules.pool_trouble_texts import trouble_line, trouble_lines
from trotline.rules.pool_troubles import in_question, served_by, trouble_of

LANE = "shop.example via residential"


def lane(**more: Any) -> LaneView:
    return LaneView(**({"lane": LANE, "waiting": 9, "leased": 0, "interval": 1.0} | more))


def ring(**more: Any) -> LanePoolView:
    return LanePoolView(**({"lane": LANE, "members": 12} | more))


def said(ring: LanePoolView, lane: LaneView, **more: Any) -> str:
    found = trouble_of(lane, ring, **more)
    return trouble_line(found) if found is not None else ""


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (
            ring(resting=12, banned=12, first_back=245.0),
            "all 12 proxies of pool residential rest for shop.example, first back in 4 min 5 s",
        ),
        (
            ring(members=1, resting=1, banned=1, first_back=30.0),
            "the only proxy of pool residential rests for shop.example, first back in 30 s",
        ),
        # Their interval is not over: this is the pace.
        (ring(resting=12, first_back=20.0), ""),
        (ring(resting=11, banned=11), ""),
        (ring(resting=11, banned=11, in_flight=1, first_back=20.0), ""),
    ],
)
def test_a_pool_without_a_free_member_is_named_with_the_time_of_the_first(state: LanePoolView, line: str) -> None:
    assert said(state, lane()) == line


def test_a_pool_that_is_served_and_has_no_members_is_named() -> None:
    line = "pool residential has no proxies: tasks of shop.example wait"
    assert said(ring(members=0), lane(), served={"residential"}) == line
    assert said(ring(members=0), lane(), served=None) == "", "the first worker has not registered it yet"


def test_a_site_that_blocks_all_members_is_named_with_the_next_probe() -> None:
    blocked = ring(site_blocked=True, resting=5, banned=5)
    line = "shop.example blocks all proxies of pool residential: probing, next in 30 s"
    assert said(blocked, lane(rests_for=30.0)) == line
    assert said(blocked, lane()) == line.partition(", next")[0]


def test_a_pool_that_is_down_as_a_whole_has_one_line_for_all_hosts() -> None:
    hosts = [lane(), lane(lane="other.example via residential")]
    found = [trouble_of(each, ring(), down=12, down_for=20.0) for each in hosts]
    line = "all 12 proxies of pool residential fail, next try in 20 s"
    assert trouble_lines([each for each in found if each]) == [line]


def test_a_pool_that_no_live_worker_serves_is_named() -> None:
    crew = [WorkerView(name=pool, silent_for=0.0, leased=0, about=WorkerInfo(pools=(pool,))) for pool in ("", "isp")]
    assert served_by(crew) == {"", "isp"}
    assert said(ring(), lane(), served=served_by(crew)) == (
        "no worker serves the pool residential: tasks of shop.example wait"
    )
    starting = WorkerView(name="new", silent_for=0.0, leased=0)
    assert served_by([*crew, starting]) is None, "it may serve the pool in a second"
    assert served_by([]) is None, "without workers nothing is served, and that is shown elsewhere"
    assert said(ring(), lane(), served=None) == ""


def test_lanes_that_are_visited_are_not_looked_at() -> None:
    assert in_question(lane())
    assert in_question(lane(leased=1, rests_for=5.0)), "a probe"
    for other in (lane(leased=1), lane(waiting=0), lane(state=State.PAUSED), lane(lane="shop.example")):
        assert not in_question(other)


def test_visits_are_counted_by_pool() -> None:
    names = [tally(result, LANE) for result in MemberResult]
    counts = {name: 2 for name in names if name} | {"records": 7, "proxy good: isp": 1, size_tally(LANE): 9}
    assert uses(counts) == [
        PoolUse(pool="isp", pages=1),
        PoolUse(pool="residential", pages=2, bans=2, throttled=2, faults=2, size=9),
    ]
    assert use_line(uses(counts)[0]) == "isp: 1 page"
    assert use_line(uses(counts)[1]) == "residential: 2 pages, 2 bans, 2 answers with status 429, 2 proxy faults"

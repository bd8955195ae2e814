from trotline.model.job import LaneView, State
from trotline.rules.lane_survey import TOP, LaneSurvey, Surveyor, admissible


def _lane(name: str, waiting: int = 0, **more: object) -> LaneView:
    return LaneView(lane=name, waiting=waiting, leased=0, interval=0.5, **more)  # type: ignore[arg-type]


def _survey(*pages: list[LaneView]) -> LaneSurvey:
    surveyor = Surveyor()
    for page in pages:
        surveyor.add(page)
    return surveyor.survey()


def test_pages_are_added_up() -> None:
    found = _survey(
        [_lane("a", 5), _lane("b", 0, rests_for=9.0, why="rate limited: Retry-After 30 s")],
        [_lane("c", 120, state=State.PAUSED), _lane("d", 10, rests_for=3.0, why="rate limited: Retry-After 5 s")],
    )
    assert (found.lanes, found.waiting) == (4, 135)
    assert found.states == {"running": 1, "resting": 2, "paused": 1}
    assert found.sizes == {"0": 1, "1-9": 1, "10-99": 1, "100-999": 1}
    assert found.causes == {"rate limited": 2}
    assert [lane.lane for lane in found.most_waiting] == ["c", "d", "a"]
    assert [lane.lane for lane in found.longest_rest] == ["b", "d"]
    assert found.top_share == 1.0


def test_the_lists_are_short_and_hold_the_largest() -> None:
    pages = [[_lane(f"{page}-{place}", page * 100 + place + 1) for place in range(100)] for page in range(20)]
    found = _survey(*pages)
    assert len(found.most_waiting) == TOP
    assert found.most_waiting[0].waiting == 2000
    assert found.most_waiting[-1].waiting == 2000 - TOP + 1


def test_a_lane_that_comes_twice_is_listed_once() -> None:
    found = _survey([_lane("a", 5)], [_lane("a", 6)])
    assert [lane.waiting for lane in found.most_waiting] == [6]


def test_no_lane_no_survey() -> None:
    assert _survey() == LaneSurvey()


def test_what_a_lane_admits_is_the_least_of_its_limits() -> None:
    assert admissible(_lane("pace", 10_000)) == 2.0
    assert admissible(_lane("few", 5)) == 0.5
    assert admissible(_lane("slow", 10_000, concurrency=2, latency=4.0)) == 0.5
    assert admissible(_lane("paused", 10_000, state=State.PAUSED)) == 0.0
    assert admissible(_lane("resting", 10_000, rests_for=30.0)) == 1.0
    assert admissible(_lane("long rest", 10_000, rests_for=600.0)) == 0.0

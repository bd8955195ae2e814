from trotline.rules.lab_plan import LONGEST_LIST, SHORTEST, Phase, phases


def test_ten_minutes_compare_processes_and_slots():
    found, each = phases(4.0, 600.0)

    assert {Phase(1, 8), Phase(1, 16), Phase(1, 32), Phase(2, 16), Phase(4, 16)} <= set(found)
    assert len(found) <= LONGEST_LIST
    assert each * len(found) == 600.0


def test_with_little_time_there_are_fewer_measurements_and_none_is_too_short():
    for minutes in (0.5, 1, 2, 3, 5, 10, 60):
        found, each = phases(2.0, 60 * minutes)
        assert found
        assert each >= SHORTEST or len(found) == 1
    assert phases(2.0, 30.0)[0] == (Phase(1, 16),)

from trotline.adapters.postgres.connect_patience import ConnectPatience


def test_an_outage_is_waited_for_once() -> None:
    patience = ConnectPatience(4.0)
    assert [patience.left(now) for now in (10.0, 12.0, 13.5, 14.0, 15.0, 30.0)] == [4.0, 2.0, 0.5, 0.0, 0.0, 0.0]


def test_after_a_connection_the_next_outage_is_waited_for_again() -> None:
    patience = ConnectPatience(4.0)
    assert [patience.left(now) for now in (10.0, 14.0)] == [4.0, 0.0]
    patience.reset()
    assert patience.left(14.5) == 4.0


def test_an_outage_long_after_the_last_one_is_another_one() -> None:
    patience = ConnectPatience(4.0)
    assert [patience.left(now) for now in (10.0, 14.0, 100.0, 104.0)] == [4.0, 0.0, 4.0, 0.0]

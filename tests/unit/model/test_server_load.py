from trotline.model.server_load import ServerLoad, use


def redis(at: float, busy: float | None) -> ServerLoad:
    return ServerLoad(kind="redis", at=at, busy=busy)


def share(before: ServerLoad | None, now: ServerLoad) -> float | None:
    return use("frontier", before, now).share


def test_the_share_is_that_of_the_time_between_two_looks():
    assert share(redis(10, 5), redis(20, 10)) == 0.5
    assert share(redis(10, 5), redis(20, 16)) == 1.0


def test_what_is_not_known_is_unknown():
    assert share(None, redis(20, 10)) is None
    assert share(redis(10, None), redis(20, 10)) is None
    assert share(redis(10, 5), redis(20, None)) is None


def test_a_server_that_was_started_anew_is_unknown():
    assert share(redis(1000, 500), redis(10, 1)) is None
    assert share(redis(10, 500), redis(20, 1)) is None


def test_sessions_that_wait_for_locks_work_one_after_another():
    def postgres(active: float, blocked: float) -> float | None:
        return share(None, ServerLoad(kind="postgresql", at=1.0, active=active, blocked=blocked))

    assert postgres(3.0, 2.0) == 1.0
    assert postgres(0.8, 0.6) == 0.8
    assert postgres(3.0, 0.0) is None

"""What an operator is woken for, and what not."""

from trotline.model.job import Progress, State
from trotline.rules.alerts import alerts

MINUTE = 60.0


def look(minute: float, *, waiting: int = 0, done: int = 0, dead: int = 0, leased: int = 0, **more) -> Progress:
    more.setdefault("tallies", {"records": 1})
    return Progress(waiting=waiting, leased=leased, done=done, dead=dead, now=minute * MINUTE, **more)


def books(minutes: int, **steady):
    """One look a minute; a value that is a function is asked with the minute."""
    return [
        look(minute, **{name: value(minute) if callable(value) else value for name, value in steady.items()})
        for minute in range(minutes)
    ]


def test_a_healthy_job_wakes_nobody():
    assert {} == alerts(books(30, waiting=lambda m: 5000 - 100 * m, done=lambda m: 100 * m))
    assert {} == alerts([])


def test_a_queue_that_grows_although_pages_end_is_told():
    growing = books(30, waiting=lambda m: 5000 + 1000 * m, done=lambda m: 100 * m)

    assert "10,000 more than 10 min ago" in alerts(growing)["queue growing"]
    assert {} == alerts(growing[:5]), "the first minutes of every crawl grow"


def test_a_queue_that_grows_a_little_wakes_nobody():
    assert {} == alerts(books(30, waiting=lambda m: 100_000 + 150 * m, done=lambda m: 100 * m))


def test_many_errors_at_once_are_told():
    spike = books(
        30,
        waiting=1000,
        done=lambda m: 100 * m,
        tallies=lambda m: {"records": 1, "retry: 503": 0 if m < 20 else 100 * (m - 20)},
    )

    assert "failed in the last 10 min" in alerts(spike)["error spike"]
    assert "error spike" not in alerts(spike[:20])


def test_errors_that_were_always_there_are_no_spike():
    always = books(30, waiting=1000, done=lambda m: 100 * m, tallies=lambda m: {"records": 1, "retry: 503": 60 * m})

    assert {} == alerts(always)


def test_a_job_in_which_nothing_ends_is_told():
    stalled = books(10, waiting=500, leased=3, done=77)

    assert "nothing ended for 9 min" in alerts(stalled)["stalled job"]
    assert {} == alerts(stalled[:4])


def test_a_job_that_rests_on_purpose_is_not_stalled():
    assert {} == alerts(books(10, waiting=500, done=77, state=State.PAUSED))
    assert {} == alerts(books(10, waiting=500, delayed=500, done=77)), "all of it is delayed"
    assert {} == alerts(books(10, waiting=0, done=77)), "nothing to do"


def test_after_a_pause_the_clock_of_a_stalled_job_starts_anew():
    paused = books(10, waiting=500, done=77, state=State.PAUSED)

    assert {} == alerts([*paused, look(11, waiting=500, done=77), look(12, waiting=500, done=77)])


def test_pages_without_a_single_record_are_told():
    assert "500 pages" in alerts([look(1, waiting=9, done=500, tallies={})])["empty run"]
    assert {} == alerts([look(1, waiting=9, done=50, tallies={})]), "it is early"


def test_a_run_that_ended_empty_is_told():
    assert "without a single record" in alerts([look(1, done=3, tallies={}, finished_at=60.0)])["empty run"]
    assert {} == alerts([look(1, done=3, tallies={"dropped: unchanged: 304": 3}, finished_at=60.0)])

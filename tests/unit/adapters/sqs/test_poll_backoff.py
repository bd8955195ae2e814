"""Asking a queue that has nothing to deliver costs little."""

from trotline.adapters.sqs.poll_backoff import LONG_POLL, Look, missed, wait


def test_the_first_look_waits_for_nothing_and_the_next_ones_ask_all_servers() -> None:
    assert wait(Look(), 100.0) == 0
    assert wait(missed(Look(), 100.0), 100.0) == LONG_POLL


def test_a_queue_that_stays_empty_is_asked_about_every_six_seconds() -> None:
    look, calls = Look(), 0
    for tenth in range(6000):
        now = tenth / 10
        if (waits := wait(look, now)) is not None:
            calls += 1
            look = missed(look, now + waits)
    assert 90 <= calls <= 130


def test_after_a_while_it_is_asked_as_if_for_the_first_time() -> None:
    look = Look(7, 100.0)
    assert wait(look, 104.0) is None
    assert wait(look, 120.0) == 0
    assert missed(look, 120.0) == Look(1, 120.0)

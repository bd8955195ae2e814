from trotline.model.job import Progress
from trotline.rules.job_figures import figures, signatures, visited

_TALLIES = {
    "ok": 50,
    "dropped: gone: 404": 10,
    "retry: blocked: 403": 6,
    "retry: broken: 503": 4,
    "dead: blocked: 403": 5,
    "snooze: throttled: 429": 5,
    "snooze: moved: 301": 7,
    "links known": 300,
    "links refused: host": 12,
    "records": 40,
    "records rejected": 2,
}
_PROGRESS = Progress(waiting=35, leased=0, done=60, dead=5, tallies=_TALLIES)


def test_figures_of_a_job() -> None:
    found = figures(_PROGRESS)
    assert (found.attempts, found.failed, found.retries) == (65 + 10 + 5, 15, 10)
    assert (found.blocked, found.throttled) == (11, 5)
    assert (found.records, found.rejected, found.refused_links) == (40, 2, 12)
    assert found.duplicate_share == 300 / 400
    assert found.blocked_share == 11 / 80


BURIED = {
    "dead: cancelled": 20,
    "dead: unreachable: lane given up after 1800 s of failures only": 30,
    "dead: throttled: lane given up after 1800 s of rate limiting only": 40,
    "dead: chain: an earlier step failed": 10,
}


def test_tasks_that_were_buried_while_they_waited_are_neither_visits_nor_attempts() -> None:
    more = Progress(waiting=35, leased=0, done=60, dead=105, tallies=_TALLIES | BURIED)
    assert (visited(more), visited(_PROGRESS)) == (65, 65)
    now, then = figures(more), figures(_PROGRESS)
    assert (now.attempts, now.failed, now.throttled) == (then.attempts, then.failed, then.throttled)


def test_what_is_visited_after_a_revival_counts_although_its_burial_was_counted() -> None:
    revived = Progress(waiting=0, leased=0, done=160, dead=5, tallies=_TALLIES | BURIED | {"ok": 150})
    assert visited(revived) == 165


def test_of_a_new_job_nothing_is_divided_by_nothing() -> None:
    found = figures(Progress(waiting=0, leased=0, done=0, dead=0))
    assert (found.failed_share, found.blocked_share, found.duplicate_share) == (0.0, 0.0, 0.0)


def test_signatures_are_what_went_wrong_the_most_frequent_first() -> None:
    assert signatures(_PROGRESS) == [("retry: blocked: 403", 6), ("dead: blocked: 403", 5), ("retry: broken: 503", 4)]

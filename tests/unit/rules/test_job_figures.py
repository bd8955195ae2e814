from trotline.model.job import Progress
from trotline.rules.job_figures import figures, signatures

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


def test_of_a_new_job_nothing_is_divided_by_nothing() -> None:
    found = figures(Progress(waiting=0, leased=0, done=0, dead=0))
    assert (found.failed_share, found.blocked_share, found.duplicate_share) == (0.0, 0.0, 0.0)


def test_signatures_are_what_went_wrong_the_most_frequent_first() -> None:
    assert signatures(_PROGRESS) == [("retry: blocked: 403", 6), ("dead: blocked: 403", 5), ("retry: broken: 503", 4)]

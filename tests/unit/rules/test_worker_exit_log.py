"""Workers that left or died stay known, with when and why."""

from typing import Any

from trotline.model.job import Progress, WorkerInfo, WorkerView
from trotline.model.note import LARGEST_NOTE
from trotline.rules import worker_exit_log
from trotline.rules.worker_exit_log import DIED, ENDED, KILLED, LEFT, MOST_GONE, MOST_PRESENT, CrewLog


def worker(name: str, **more: Any) -> WorkerView:
    held_back = more.pop("held_back", "")
    found = {"silent_for": 1.0, "leased": 0, "done": 5, "about": WorkerInfo(host="node-1", held_back=held_back)}
    return WorkerView(name=name, **(found | more))


def at(now: float, **more: Any) -> Progress:
    return Progress(**{"waiting": 1, "leased": 0, "done": 0, "dead": 0, "now": now, **more})


def step(log: CrewLog, crew: list[WorkerView], progress: Progress) -> CrewLog:
    return worker_exit_log.step(log, crew, progress, 10.0)


def whys(log: CrewLog) -> dict[str, str]:
    return {one.name: one.why for one in log.gone}


def test_a_worker_that_says_goodbye_left_and_one_that_fell_silent_died() -> None:
    log = step(CrewLog(), [worker("a"), worker("b", silent_for=40.0, leased=3), worker("c")], at(10.0))
    log = step(log, [worker("c")], at(15.0, tallies={"rescued": 3}))
    assert whys(log) == {"a": LEFT, "b": DIED}
    assert [(one.name, one.host, one.at, one.done, one.leased) for one in log.gone] == [
        ("a", "node-1", 15.0, 5, 0),
        ("b", "node-1", 15.0, 5, 3),
    ]


def test_a_process_that_was_killed_is_not_said_to_have_left() -> None:
    log = step(CrewLog(), [worker("a", leased=2), worker("b")], at(10.0))
    assert whys(step(log, [worker("b")], at(15.0, tallies={"rescued": 2}))) == {"a": KILLED}


def test_what_held_a_worker_back_is_kept() -> None:
    log = step(CrewLog(), [worker("a", held_back="sink is unreachable: refused")], at(10.0))
    assert whys(step(log, [], at(15.0))) == {"a": f"{LEFT} (sink is unreachable: refused)"}


def test_at_the_end_of_the_job_all_have_left() -> None:
    log = step(CrewLog(), [worker("a")], at(10.0))
    ended = step(log, [worker("a")], at(20.0, finished_at=19.0))
    assert whys(ended) == {"a": ENDED}
    assert step(ended, [], at(90.0, finished_at=19.0)) is ended, "once is enough"


def test_figures_alone_are_written_once_a_minute() -> None:
    log = step(CrewLog(), [worker("a")], at(10.0))
    assert step(log, [worker("a", done=9)], at(15.0)) is log
    assert step(log, [worker("a", done=9)], at(70.0)).present[0].done == 9


def test_a_log_of_many_fits_into_a_note_and_says_what_it_left_out() -> None:
    many = [worker(f"{'w' * 190}{number:04}", held_back="x" * 500) for number in range(MOST_PRESENT + 100)]
    log = step(CrewLog(), many, at(10.0))
    assert (len(log.present), log.unfollowed) == (MOST_PRESENT, 100)
    log = step(log, many[150:], at(15.0))
    assert (len(log.gone), log.gone_before) == (MOST_GONE, 150 - MOST_GONE)
    read = worker_exit_log.decode(worker_exit_log.encode(log))
    assert 0 < len(read.present) and len(read.present) + read.unfollowed == len(many) - 150
    assert 0 < len(read.gone) and len(read.gone) + read.gone_before == 150


def test_a_damaged_log_begins_anew() -> None:
    assert worker_exit_log.decode(b"\xff") == CrewLog()
    assert worker_exit_log.decode(b"x" * (LARGEST_NOTE + 1)) == CrewLog()
    assert worker_exit_log.decode(worker_exit_log.encode(CrewLog(at=float("nan")))) == CrewLog()

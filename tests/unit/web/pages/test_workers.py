"""The table of workers."""

from trotline.model.job import WorkerInfo, WorkerView
from trotline.web.pages.workers import _hosts, _worker, balance


def _view(number: int, host: str = "a", done: int = 10, silent: float = 0.0) -> WorkerView:
    about = WorkerInfo(host=host, process=number, slots=16, memory=100)
    return WorkerView(name=f"{host}-{number}", silent_for=silent, leased=1, done=done, about=about)


def test_balance_is_one_if_all_do_the_same() -> None:
    assert balance([_view(1), _view(2)]) == 1
    assert balance([_view(1, done=30), _view(2, done=10)]) == 1.5


def test_without_work_or_with_one_worker_there_is_no_balance() -> None:
    assert balance([_view(1)]) is None
    assert balance([_view(1, done=0), _view(2, done=0)]) is None


def test_a_worker_without_figures_is_unknown_and_not_idle() -> None:
    shown = _worker(_view(1), 10)
    assert (shown.busy, shown.cpu, shown.lag) == (None, None, None)


def test_hosts_add_up() -> None:
    crew = [_view(number, host="ab"[number % 2], silent=60.0 if number == 1 else 0.0) for number in range(6)]
    rows = {row.host: row for row in _hosts(crew, 60)}
    assert rows["a"].number == rows["b"].number == 3
    assert rows["a"].ended + rows["b"].ended == 60
    assert rows["b"].note == "1 silent"
    assert abs(sum(row.share or 0 for row in rows.values()) - 1) < 1e-9

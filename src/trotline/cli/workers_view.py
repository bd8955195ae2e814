"""The workers of a job, as a table."""

from rich.cells import set_cell_size
from rich.text import Text

from trotline.cli.formatting import count, length, safe
from trotline.model.job import Job, WorkerView
from trotline.ports.frontier import BEAT

_WIDEST = 24


def crew_table(crew: list[WorkerView], hidden: int, job: Job) -> list[Text]:
    """A line for each worker, under a head."""
    hosts = [_fit(worker.about.host) for worker in crew]
    names = [_fit(_name(worker)) for worker in crew]
    wide_host, wide_name = max(4, *map(len, hosts)), max(6, *map(len, names))
    head = f"{'host':<{wide_host}}  {'worker':<{wide_name}}  leased      done   failed  version"
    rows = [Text(head, style="dim")]
    for worker, host, name in zip(crew, hosts, names, strict=True):
        numbers = f"{count(worker.leased):>6}{count(worker.done):>10}{count(worker.failed):>9}"
        rows.append(
            Text.assemble(
                f"{set_cell_size(host, wide_host)}  {set_cell_size(name, wide_name)}  {numbers}  ",
                _version(worker, job),
                ("  " + remark(worker), "yellow"),
            )
        )
    if hidden > 0:
        rows.append(Text(f"and {count(hidden)} more", style="dim"))
    return rows


def remark(worker: WorkerView) -> str:
    """What is out of the ordinary with a worker; empty if nothing is."""
    if worker.silent_for > 2 * BEAT:
        return f"silent for {length(worker.silent_for)}"
    if worker.about.held_back:
        return safe(worker.about.held_back, 100)
    pools = () if "" in worker.about.pools else worker.about.pools
    only = (*(f"route {name}" for name in worker.about.routes), *pools)
    return safe("only " + ", ".join(only), 100) if only else ""


def _name(worker: WorkerView) -> str:
    """Its name without the host, which has its own column."""
    return worker.name.removeprefix(worker.about.host + "-") if worker.about.host else worker.name


def _version(worker: WorkerView, job: Job) -> tuple[str, str]:
    """The job's own version needs no attention; one that was let in later is worth a look."""
    version = worker.about.version[:7] or "-"
    return f"{version:<7}", "" if worker.about.version in ("", job.version) else "cyan"


def _fit(text: str) -> str:
    shown = safe(text, 200)
    return shown if len(shown) <= _WIDEST else shown[: _WIDEST - 1] + "…"

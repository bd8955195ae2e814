"""Two backends: a sink that is a folder of JSON files, and a frontier that keeps a journal."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from trotline.model.job import Job
from trotline.model.record_row import Row, RowPage
from trotline.model.time import Moment
from trotline.ports.backend import Backend, FrontierOffer, OpenJob, RowReader, SinkOffer
from trotline.ports.jobs import Jobs
from trotline.ports.leadership import Leadership
from trotline.ports.ledger import Ledger
from trotline.ports.sink import Sink
from trotline.rules.backend_urls import file_url, path_of


def _sink(url: str, job: str, started_at: Moment) -> Sink:
    from trotline_folder.sink import FolderSink

    return FolderSink(Path(path_of(url)), job=job)


def _ledger(url: str) -> Ledger:
    from trotline_folder.sink import FolderSink

    return FolderSink(Path(path_of(url)))


def _look(url: str, kinds: Mapping[str, int]) -> str:
    return f"ls {shlex.quote(path_of(url))}/*.json"


def _snapshot(url: str, kind: str | None, site: str | None) -> AbstractContextManager[Iterable[Row]]:
    from trotline_folder.sink import rows_in

    @contextmanager
    def rows() -> Iterator[Iterable[Row]]:
        yield [row for row in rows_in(Path(path_of(url))) if kind in (None, row.kind) and site in (None, row.site)]

    return rows()


def _count(url: str) -> dict[str, int]:
    from trotline_folder.sink import kinds_in

    return kinds_in(Path(path_of(url)))


async def _page(url: str, kind: str | None, prefix: str, after: str, limit: int) -> RowPage:
    from trotline_folder.sink import rows_in

    found = [row for row in rows_in(Path(path_of(url))) if kind in (None, row.kind)]
    found = [row for row in found if row.key.startswith(prefix) or row.url.startswith(prefix)]
    start = int(after or 0)
    rows = found[start : start + min(limit, 1000)]
    return RowPage(rows, str(start + len(rows)) if start + len(rows) < len(found) else "")


async def _jobs(url: str) -> Jobs:
    from trotline.adapters.sqlite.jobs import SqliteJobs

    return SqliteJobs(path_of(url))


async def _job(url: str, job: Job, keeper: str) -> OpenJob:
    from trotline_folder.frontier import open_job

    return open_job(path_of(url), job, keeper=keeper)


async def _leadership(url: str) -> Leadership:
    from trotline.adapters.sqlite.leadership import SqliteLeadership

    return SqliteLeadership(path_of(url))


FOLDER = Backend(
    name="folder",
    schemes=("folder",),
    local=True,
    sink=SinkOffer(
        forms=("folder:PATH",),
        parse=lambda text: file_url(text, "folder"),
        open=_sink,
        look=_look,
        ledger=_ledger,
        rows=RowReader(snapshot=_snapshot, count=_count, page=_page),
    ),
)
JOURNAL = Backend(
    name="journal",
    schemes=("journal",),
    local=True,
    frontier=FrontierOffer(
        forms=("journal:PATH",),
        parse=lambda text: file_url(text, "journal"),
        jobs=_jobs,
        job=_job,
        leadership=_leadership,
    ),
)

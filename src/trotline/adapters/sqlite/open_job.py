"""A job of a frontier file, opened: its frontier and its console over one connection."""

import random
from collections.abc import Callable

from trotline.adapters.sqlite.console import SqliteConsole
from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.frontier import SqliteFrontier
from trotline.adapters.sqlite.job_file import JobFile
from trotline.model.job import Job
from trotline.model.time import Moment
from trotline.ports.backend import OpenJob


def open_job(
    path: str,
    job: Job,
    *,
    now: Callable[[], Moment] | None = None,
    rng: random.Random | None = None,
    inline: bool = False,
    keeper: str = "",
) -> OpenJob:
    """`now`, `rng` and `inline` (no threads) make a crawl repeatable."""
    file = JobFile(Database(path, now=now, inline=inline), job)
    return OpenJob(job, SqliteFrontier(file, rng=rng, keeper=keeper), SqliteConsole(file))

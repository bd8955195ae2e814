"""Which job is meant, and with which version of the spider's code."""

import hashlib
import importlib.util
from pathlib import Path

from trotline.app import wiring
from trotline.app.loading import parse_ref
from trotline.model.job import Job, State
from trotline.spider.spider import Spider


def code_version(ref: str) -> str:
    """Twelve characters that change with the spider's own file; empty if it has none that can be read."""
    address = parse_ref(ref)
    place = address.file or _file_of(address.module)
    path = Path(place) if place else None
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path is not None and path.is_file() else ""


async def open_job(frontier: str, spider: Spider, version: str, *, fresh: bool) -> tuple[Job, bool]:
    """The unfinished job of this spider, or one whose end was never told; else a new one. Was it there already?

    Whoever goes on with a job by name wants it done with the code that is here now: its version is let in.
    """
    jobs = await wiring.open_jobs(frontier)
    try:
        latest = None if fresh else await jobs.latest(spider.name)
        if latest is None or latest.announced or await is_cancelled(frontier, latest):
            return await jobs.start(spider.name, spider.rules, version), False
        if not latest.accepts(version):
            latest = await jobs.admit(latest.id, version)
        return latest, True
    finally:
        await jobs.close()


async def is_cancelled(frontier: str, job: Job) -> bool:
    opened = await wiring.open_frontier(frontier, job)
    try:
        return (await opened.progress()).state is State.CANCELLED
    finally:
        await opened.close()


def _file_of(module: str) -> str:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return ""
    return (spec.origin or "") if spec is not None and spec.has_location else ""

"""The jobs of the frontiers that this server shows, and the connections to them: opened when a job is asked for, closed
after a while without questions."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from trotline.commands.advice_inputs import ServerExtras
from trotline.commands.find_jobs import Target, frontiers
from trotline.config import backends
from trotline.config.backend_urls import public
from trotline.config.settings import Settings
from trotline.coordinator.job_observer import Observer
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.console import Console
from trotline.ports.jobs import Jobs
from trotline.web.errors import Refused

FRESH: Seconds = 1.0
"""A list of jobs that is not older is not read again, whatever the number of viewers."""
IDLE: Seconds = 60.0
"""A job that is not asked for is closed after this long."""
TIDY_EVERY: Seconds = 5.0
MOST_OPEN = 100
"""Jobs that are open at once; the one that was not used for the longest time is closed first."""
WITHIN: Seconds = 5.0
"""A frontier that does not answer by then is unreachable, for a viewer."""

T = TypeVar("T")


class Place(msgspec.Struct, kw_only=True):
    """One frontier, with what was read from it last."""

    url: str
    jobs: dict[str, Job] = {}
    unreadable: tuple[str, ...] = ()
    read_at: Seconds | None = None
    """By our own clock; None: never."""
    trouble: str = ""
    """Why it could not be read just now; then the rest is what was known before."""

    @property
    def name(self) -> str:
        return public(self.url)


class Opened(msgspec.Struct, kw_only=True):
    """A connection to a job, shared by all who look at it."""

    opened: OpenJob
    observer: Observer
    file: tuple[int, int]
    users: int = 0
    used: Seconds = 0.0
    unfit: bool = False
    """Closed as soon as nothing uses it: its file was replaced, or a call failed."""

    @property
    def console(self) -> Console:
        return self.opened.console


class JobsIndex:
    def __init__(self, settings: Settings, clock: Callable[[], Seconds] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._places: dict[str, Place] = {}
        self._servers: dict[str, Jobs] = {}
        """Connections to the lists of jobs on servers. Files are opened for each look: they may be replaced."""
        self._listed: Seconds | None = None
        self._listing = asyncio.Lock()
        self._open: dict[tuple[str, str], Opened] = {}
        self._opening = asyncio.Lock()

    async def places(self) -> list[Place]:
        """All frontiers with their jobs; not older than FRESH, unless one is unreachable."""
        async with self._listing:
            if self._listed is None or self._clock() - self._listed >= FRESH:
                await self._list()
                self._listed = self._clock()
        return list(self._places.values())

    def age(self, place: Place) -> Seconds | None:
        """Seconds since its list was read."""
        return None if place.read_at is None else round(self._clock() - place.read_at, 1)

    def forget_list(self) -> None:
        """The list has just been changed by us."""
        self._listed = None

    async def find(self, job: str) -> tuple[Place, Job]:
        """404: there is no such job. 409: two frontiers have one of this name."""
        found = [(place, place.jobs[job]) for place in await self.places() if job in place.jobs]
        if len(found) > 1:
            names = ", ".join(place.name for place, _ in found)
            raise Refused(409, f"there are several jobs {job}: in {names}", hint="Name one frontier: --frontier URL")
        if found:
            return found[0]
        if trouble := next((place for place in self._places.values() if place.trouble), None):
            raise Refused(503, f"{trouble.name} is unreachable: {trouble.trouble}", hint="Try again later.")
        raise Refused(404, f"there is no job {job!r}", hint="See which there are: GET /api/v1/jobs")

    async def target(self, job: str) -> Target:
        place, found = await self.find(job)
        return Target(place.url, found)

    @asynccontextmanager
    async def opened(self, job: str) -> AsyncIterator[Opened]:
        """The job's frontier, shared by all who look at it. FrontierUnreachable if it is that."""
        place, found = await self.find(job)
        entry = await self._entry(place.url, found)
        entry.users += 1
        try:
            yield entry
        except (FrontierError, TimeoutError) as error:
            # The next one tries with a new connection.
            entry.unfit = True
            if isinstance(error, TimeoutError):
                raise FrontierUnreachable(f"{place.name} did not answer within {WITHIN:g} s") from error
            raise
        finally:
            entry.users -= 1
            entry.used = self._clock()

    async def ask(self, job: str, question: Callable[[Console], Awaitable[T]]) -> T:
        """One question to the job's console, with a limit of time."""
        async with self.opened(job) as opened, asyncio.timeout(WITHIN):
            return await question(opened.console)

    async def drop(self, url: str, job: str) -> None:
        """The job is forgotten: its connection is of no use any more."""
        entry = self._open.get((url, job))
        if entry is not None:
            entry.unfit = True
        await self.close_idle()

    async def tidy(self) -> None:
        """Close what is not used any more, now and then."""
        while True:
            await asyncio.sleep(TIDY_EVERY)
            await self.close_idle()

    async def close_idle(self) -> None:
        now = self._clock()
        idle = [
            key for key, entry in self._open.items() if not entry.users and (entry.unfit or now - entry.used >= IDLE)
        ]
        for key in idle:
            await _closed(self._open.pop(key).opened.close())

    async def close(self) -> None:
        entries, self._open = list(self._open.values()), {}
        servers, self._servers = list(self._servers.values()), {}
        for closing in (*(entry.opened.close() for entry in entries), *(jobs.close() for jobs in servers)):
            await _closed(closing)

    async def _entry(self, url: str, job: Job) -> Opened:
        key, file = (url, job.id), _file(url)
        async with self._opening:
            entry = self._open.get(key)
            if entry is not None and (entry.unfit or entry.file != file):
                entry.unfit = True
                del self._open[key]
                if not entry.users:
                    await _closed(entry.opened.close())
                else:
                    self._open[(f"{url} until unused {id(entry)}", job.id)] = entry
                entry = None
            if entry is None:
                async with _timely(url):
                    opened = await backends.open_frontier(url, job)
                extras = ServerExtras(url, self._settings.sink_of(job.spider), job.rules.default)
                observer = Observer(opened.console, time.monotonic, extras)
                entry = Opened(opened=opened, observer=observer, file=file, used=self._clock())
                self._open[key] = entry
                await self._make_room()
            return entry

    async def _make_room(self) -> None:
        unused = sorted((entry.used, key) for key, entry in self._open.items() if not entry.users)
        # The newest one was opened just now, for someone.
        for _, key in unused[: max(0, min(len(self._open) - MOST_OPEN, len(unused) - 1))]:
            await _closed(self._open.pop(key).opened.close())

    async def _list(self) -> None:
        wanted = frontiers(self._settings)
        self._places = {url: self._places.get(url) or Place(url=url) for url in wanted}
        await asyncio.gather(*(self._read(place) for place in self._places.values()))

    async def _read(self, place: Place) -> None:
        try:
            async with _timely(place.url):
                found, unreadable = await self._jobs_of(place.url)
        except FrontierError as error:
            place.trouble = error.what
            return
        place.jobs, place.unreadable = {job.id: job for job in found}, unreadable
        place.read_at, place.trouble = self._clock(), ""

    async def _jobs_of(self, url: str) -> tuple[list[Job], tuple[str, ...]]:
        jobs = self._servers.pop(url, None) or await backends.open_jobs(url)
        try:
            found = await jobs.all(), jobs.unreadable()
        except BaseException:
            await _closed(jobs.close())
            raise
        if backends.is_local(url):
            await jobs.close()
        else:
            self._servers[url] = jobs
        return found


@asynccontextmanager
async def _timely(url: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WITHIN):
            yield
    except TimeoutError as error:
        raise FrontierUnreachable(f"{public(url)} did not answer within {WITHIN:g} s") from error


def _file(url: str) -> tuple[int, int]:
    """Which file it is: one of the same name may take its place. Of a server nothing."""
    if not (path := backends.local_path(url)):
        return 0, 0
    try:
        status = Path(path).stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


async def _closed(closing: Awaitable[Any]) -> None:
    """A connection that is broken already needs no more than that."""
    try:
        async with asyncio.timeout(WITHIN):
            await closing
    except (FrontierError, OSError, TimeoutError):
        return

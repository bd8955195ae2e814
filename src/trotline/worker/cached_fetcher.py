"""For development (`--cache`): a fetcher that answers from the archive what is in it.

Pages that are fetched are archived by the group commit, as always; robots.txt and sitemaps are written here. Only plain
GET requests are answered: what depends on cookies, a login or a body is fetched.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from trotline.errors import ArchiveError
from trotline.model.account import StoredCookie
from trotline.model.answer import FROM_ARCHIVE, Answer, Failure
from trotline.model.archive import ArchiveDamage, ArchiveEntry, ArchiveQuery, Capture, CaptureKind
from trotline.model.limits import Limits
from trotline.model.proxy import Way
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.ports.archive import Archive
from trotline.ports.fetcher import Fetcher
from trotline.rules import redaction
from trotline.rules.capture_headers import redacted_response

log = logging.getLogger("trotline.cache")

_LASTING = frozenset({404, 410})
"""Statuses that are answered from the archive besides 2xx and 3xx."""


class CachedFetcher:
    """Implements `ports.fetcher.Fetcher`."""

    def __init__(
        self,
        fetcher: Fetcher,
        archive: Archive,
        job: str = "",
        now: Callable[[], Moment] = time.time,
        limits: Limits | None = None,
    ) -> None:
        """`limits`: of the spider; others may have written a larger page into the archive."""
        self._fetcher = fetcher
        self._archive = archive
        self._job = job
        self._now = now
        self._largest = (limits or Limits()).largest_body
        self._known: dict[str, ArchiveEntry] | None = None

    async def fetch(self, task: Task, way: Way | None = None) -> Answer | Failure:
        return await self._cached(task, self._largest) or await self._fetcher.fetch(task, way)

    async def fetch_start(self, task: Task, most: int, way: Way | None = None) -> Answer | Failure:
        if (known := await self._cached(task, most)) is not None:
            return known
        answer = await self._fetcher.fetch_start(task, most, way)
        if isinstance(answer, Answer) and _may_be_cached(task) and _lasts(answer.status):
            await self._keep(task, answer)
        return answer

    def restore_cookies(self, session: str, cookies: Sequence[StoredCookie]) -> None:
        self._fetcher.restore_cookies(session, cookies)

    def cookies(self, session: str) -> tuple[StoredCookie, ...]:
        return self._fetcher.cookies(session)

    async def close(self) -> None:
        await self._fetcher.close()

    async def _cached(self, task: Task, most: int) -> Answer | None:
        if not _may_be_cached(task):
            return None
        try:
            if self._known is None:
                self._known = await self._newest()
            entry = self._known.get(task.url)
            if entry is None:
                return None
            page = await self._archive.read(entry)
        except ArchiveError as error:
            log.warning("cache.unreadable %s", error.what)
            return None
        if len(page.answer.body) > most:
            log.warning("cache.too_large %s", redaction.url(task.url))
            return None
        # It is not archived again.
        return msgspec.structs.replace(page.answer, url=task.url, wire=b"", notes=(FROM_ARCHIVE,))

    async def _newest(self) -> dict[str, ArchiveEntry]:
        found: dict[str, ArchiveEntry] = {}
        async for entry in self._archive.entries(ArchiveQuery(kind=CaptureKind.RESPONSE), _damaged):
            known = found.get(entry.url)
            if _lasts(entry.status) and (known is None or known.at < entry.at):
                found[entry.url] = entry
        return found

    async def _keep(self, task: Task, answer: Answer) -> None:
        at = self._now()
        capture = Capture(
            id=hashlib.blake2b(f"{task.url} {at!r}".encode(), digest_size=16).hexdigest(),
            url=task.url,
            at=at,
            job=self._job,
            status=answer.status,
            headers=redacted_response(answer.headers),
            body=answer.body,
            address=answer.address,
            http=answer.http,
        )
        try:
            await self._archive.write([capture])
        except ArchiveError as error:
            # It is only fetched again.
            log.warning("cache.unwritable %s", error.what)


def _damaged(damage: ArchiveDamage) -> None:
    """What it had is fetched again."""
    log.warning("cache.damaged %s", redaction.text(damage.reason))


def _may_be_cached(task: Task) -> bool:
    """A URL with something to redact is not in the archive under its own name."""
    plain = task.method == "GET" and not (task.body or task.headers or task.session)
    return plain and redaction.url(task.url) == task.url


def _lasts(status: int) -> bool:
    return 200 <= status < 400 or status in _LASTING

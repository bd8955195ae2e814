"""A list of proxies that is read over HTTP, again every minute, in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

import msgspec

from trotline.model.answer import CUT_SHORT, Answer
from trotline.model.limits import Limits
from trotline.model.secret import Secret, without_secrets
from trotline.model.task import Task
from trotline.model.time import Seconds

EVERY: Seconds = 60.0
LARGEST = 16 * 1024 * 1024
"""Bytes of a list, in a file or over HTTP."""
_LIMITS = Limits(total=20.0, first_byte=15.0, wire_body=LARGEST, decoded_body=LARGEST)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class FeedResult(msgspec.Struct, frozen=True):
    text: str = ""
    failure: str = ""


class ListFeed:
    """`take` never waits: it returns what a finished read has brought, and starts the next one when it is due."""

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], Seconds],
        allow_private: bool = False,
        allow: Collection[str] = (),
        every: Seconds = EVERY,
    ) -> None:
        self.url = _checked(url)
        self.host = urlsplit(self.url).netloc
        self._clock = clock
        self._allow_private = allow_private
        self._allow = tuple(allow)
        self._every = every
        self._due = 0.0
        self._result: FeedResult | None = None
        self._thread: threading.Thread | None = None

    def first(self) -> FeedResult:
        """Read it now. In a thread, as the caller may have an event loop."""
        self._start()
        assert self._thread is not None  # noqa: S101 - for the type checker
        self._thread.join()
        return self._finished() or FeedResult(failure="it was not read")

    def take(self) -> FeedResult | None:
        if self._thread is not None and self._thread.is_alive():
            return None
        found = self._finished()
        if found is None and self._clock() >= self._due:
            self._start()
        return found

    def _start(self) -> None:
        self._due = self._clock() + self._every
        self._thread = threading.Thread(target=self._read, name="trotline-proxy-list", daemon=True)
        self._thread.start()

    def _finished(self) -> FeedResult | None:
        found, self._result, self._thread = self._result, None, None
        return found

    def _read(self) -> None:
        try:
            self._result = asyncio.run(self._fetch())
        except Exception as error:
            # What a server does is never an error here, so this is a defect: reported, and reloading goes on.
            self._result = FeedResult(failure=without_secrets(f"{type(error).__name__}: {error}"))

    async def _fetch(self) -> FeedResult:
        from trotline.adapters.http.fetcher import HttpFetcher

        own = [self._hostname] if self._hostname in _LOOPBACK else []
        fetcher = HttpFetcher(
            _LIMITS,
            user_agent="Trotline",
            spider="proxies",
            allow_private=self._allow_private,
            allow=(*self._allow, *own),
            types=("*",),
            slots=1,
        )
        try:
            answer = await fetcher.fetch_start(Task(url=self.url, route=""), LARGEST)
        finally:
            await fetcher.close()
        if not isinstance(answer, Answer):
            return FeedResult(failure=without_secrets(answer.why or answer.trouble.value))
        return _text(answer)

    @property
    def _hostname(self) -> str:
        return urlsplit(self.url).hostname or ""


def _text(answer: Answer) -> FeedResult:
    if answer.status != 200:
        return FeedResult(failure=f"status {answer.status}")
    if any(note.startswith(CUT_SHORT) for note in answer.notes):
        return FeedResult(failure=f"it is larger than {LARGEST:,} bytes, or was cut short")
    try:
        return FeedResult(text=answer.body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return FeedResult(failure="it is not UTF-8 text")


def _checked(url: str) -> str:
    """ValueError says what is wrong, without quoting it: it may have a token."""
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("not a URL; write it like https://lists.example/proxies.txt") from None
    if parts.scheme not in ("https", "http") or not host or parts.username:
        raise ValueError("must be a URL without login, like https://lists.example/proxies.txt")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise ValueError("must be https: a list has logins (http only from this machine: http://127.0.0.1:8000/...)")
    for secret in (parts.query, parts.path.rpartition("/")[2]):
        # A token is in the query or at the end of the path. Messages name the host alone; this is a second safeguard.
        if len(secret) > 15:
            Secret(secret)
    return url.strip()

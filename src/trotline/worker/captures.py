"""What a visit leaves for the archive: its response and request, redacted, and the files that its handler kept."""

import hashlib
from typing import Any, NamedTuple

import msgspec

from trotline.model.answer import FROM_ARCHIVE, Answer, Failure
from trotline.model.archive import Capture, CaptureKind
from trotline.model.client_kind import Client
from trotline.model.harvest import Artifact
from trotline.model.lease import Lease
from trotline.model.task import Task
from trotline.rules import redaction
from trotline.rules.archive_choice import ArchiveChoice
from trotline.rules.capture_headers import Pairs, redacted_request, redacted_response
from trotline.spider.spider import Spider
from trotline.worker.finished_visit import FinishedVisit

NO_RESPONSE = "not archived: no response"
KNOWN = f"not archived: {FROM_ARCHIVE}"
STORED_FILE = "not archived: a download, which is stored as a file"
SITEMAP = "not archived: a sitemap"
_SELDOM = ("key", "chain", "session", "pool", "attempt")
"""Fields of a task that most tasks do not have."""


class Response(NamedTuple):
    """A response that will be archived. It is captured with the others of its batch: page by page, among everything
    else that a visit does, the same work takes twice as long."""

    captures: "Captures"
    asked: Task
    """As it was sent."""
    answer: Answer
    account: str

    @property
    def size(self) -> int:
        return len(self.answer.wire or self.answer.body)

    def captured(self, visit: FinishedVisit) -> FinishedVisit:
        return self.captures.captured(visit, self)


class Captures:
    """For one spider and job."""

    def __init__(self, spider: Spider, job: str, request_headers: tuple[tuple[str, str], ...]) -> None:
        """`request_headers`: of every request of the spider, without secrets."""
        self._spider = spider
        self._job = job
        secret = redacted_request([(name, "") for name in spider.secret_headers])
        self._of_browser = secret
        self._own = (*redacted_request(request_headers), *secret)
        """Of every request with our own client: redacted once, not for each page."""

    def left(self, visit: FinishedVisit, asked: Task, answer: Answer | Failure, account: str = "") -> FinishedVisit:
        """The visit with its response, or with the reason why that is not archived. `asked`: the task as it was
        sent."""
        if isinstance(answer, Failure):
            return self._without(visit, NO_RESPONSE)
        if answer.file is not None:
            return self._without(visit, STORED_FILE)
        if FROM_ARCHIVE in answer.notes:
            return self._without(visit, KNOWN)
        task = visit.lease.task
        if why := self._choice(task).why_not(visit.verdict, task.fingerprint):
            return self._without(visit, why)
        if answer.wire:
            # All that waits for the batch: the page has been read.
            answer = msgspec.structs.replace(answer, body=b"")
        return msgspec.structs.replace(visit, response=Response(self, asked, answer, account))

    def captured(self, visit: FinishedVisit, response: Response) -> FinishedVisit:
        capture = self._response(visit, response.asked, response.answer, response.account)
        kept = self._artifacts(visit) if visit.kept else ()
        return msgspec.structs.replace(visit, response=None, captures=(capture, *kept), kept=(), archive=capture.id)

    def _without(self, visit: FinishedVisit, why: str) -> FinishedVisit:
        return msgspec.structs.replace(visit, captures=self._artifacts(visit), kept=(), archive=why)

    def _artifacts(self, visit: FinishedVisit) -> tuple[Capture, ...]:
        return tuple(self._artifact(visit.lease, number, one) for number, one in enumerate(visit.kept))

    def _choice(self, task: Task) -> ArchiveChoice:
        route = self._spider.routes.get(task.route)
        return self._spider.archive if route is None else route.archive

    def _response(self, visit: FinishedVisit, asked: Task, answer: Answer, account: str) -> Capture:
        lease, task = visit.lease, visit.lease.task
        return Capture(
            id=self._id(lease, 0),
            url=redaction.url(task.url),
            at=lease.leased_at,
            job=self._job,
            route=task.route,
            method=task.method,
            request_headers=self._sent(asked),
            status=answer.status,
            headers=redacted_response(answer.headers),
            body=answer.wire or answer.body,
            is_coded=bool(answer.wire),
            address=answer.address,
            http=answer.http,
            about=_about(visit, account),
        )

    def _sent(self, asked: Task) -> Pairs:
        """Headers that are known here, redacted. Those of a browser's profile are not."""
        route = self._spider.routes.get(asked.route)
        client = asked.client or (route.client if route is not None else self._spider.client)
        always = self._own if client == Client.PLAIN else self._of_browser
        return (*always, *redacted_request(asked.headers)) if asked.headers else always

    def _artifact(self, lease: Lease, number: int, artifact: Artifact) -> Capture:
        return Capture(
            id=self._id(lease, number + 1),
            kind=CaptureKind.ARTIFACT,
            url=artifact.address,
            at=lease.leased_at,
            job=self._job,
            route=lease.task.route,
            type=artifact.type,
            body=artifact.data,
            about={"page": redaction.url(lease.task.url)},
        )

    def _id(self, lease: Lease, number: int) -> str:
        text = f"{self._job} {lease.token} {lease.leased_at!r} {lease.task.fingerprint} {number}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _about(visit: FinishedVisit, account: str) -> dict[str, Any]:
    """What a re-parse needs of the task: all that a handler can read of it."""
    task = visit.lease.task
    about: dict[str, Any] = {
        "site": task.site,
        "task": task.id,
        "depth": task.depth,
        "verdict": visit.verdict,
        "method": task.method,
        "lane": task.lane,
        "parent": redaction.parent(task.parent),
    }
    if task.meta:
        about["meta"] = _redacted(task.meta)
    if task.body:
        about["request_body"] = len(task.body)
    if account:
        about["account"] = account
    for name in _SELDOM:
        if value := getattr(task, name):
            about[name] = value
    return _masked(about)


def _masked(about: dict[str, Any]) -> dict[str, Any]:
    """A key, a session or a lane may be a URL, or have a login in it. One look at all texts: nearly always there is
    nothing to redact."""
    said = "\n".join([value for value in about.values() if type(value) is str])
    if redaction.text(said) == said:
        return about
    return {name: redaction.text(value) if type(value) is str else value for name, value in about.items()}


def _redacted(value: Any) -> Any:
    """`meta` without secrets, as everywhere. Text by text: in its JSON, a redacted value would take the backslash of
    the quote after it, and a secret that JSON escapes would not be found."""
    if isinstance(value, str):
        return redaction.text(value)
    if isinstance(value, dict):
        return {_redacted(name): _redacted(one) for name, one in value.items()}
    return [_redacted(one) for one in value] if isinstance(value, list | tuple) else value

"""The archive: raw responses and artifacts as they are written, found and read."""

import re
from enum import StrEnum
from typing import Any

import msgspec

from trotline.model.answer import Answer
from trotline.model.time import LAST_MOMENT, Moment

LARGEST_RECORD = 256 * 1024 * 1024
"""Bytes of a record that is read, packed and unpacked: more than any limit lets through, and an end for bombs."""
LONGEST_TYPE = 1000
"""Characters of a content type in the index."""
_LONGEST_TEXTS = 1024 * 1024
"""Characters of the texts of a capture in the index: far more than a URL of ours may have. One longer line would make
the whole index unreadable."""
_ID = re.compile(r"[0-9A-Fa-f]{32}")


class CaptureKind(StrEnum):
    RESPONSE = "response"
    ARTIFACT = "artifact"
    """A file that a handler kept: `page.keep("label.pdf", data)`."""


class Capture(msgspec.Struct, kw_only=True):
    """What is written for one response or artifact. The only thing in it that changes: its body is released as soon as
    it is durable."""

    id: str
    """32 hexadecimal digits: the same visit has the same id when it is written again."""
    kind: CaptureKind = CaptureKind.RESPONSE
    url: str
    """Redacted; of an artifact: its address."""
    at: Moment
    """When the page was leased, by the frontier's clock: the `seen_at` of its records."""
    job: str = ""
    route: str = ""
    method: str = "GET"
    request_headers: tuple[tuple[str, str], ...] = ()
    """As they were sent; values of secrets are redacted."""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    """Of the response, redacted."""
    body: bytes = b""
    is_coded: bool = False
    """Its body is as it came: gzip-coded, as its `content-encoding` says."""
    address: str = ""
    """The IP address of the server."""
    http: str = "1.1"
    type: str = ""
    """The content type of an artifact."""
    about: dict[str, Any] = {}
    """The task and its outcome, for a re-parse."""

    def release(self) -> None:
        """The body is stored: its memory is free again."""
        self.body = b""


class ArchiveEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One capture in the index."""

    id: str
    url: str
    at: Moment
    kind: CaptureKind = CaptureKind.RESPONSE
    status: int = 0
    mime: str = ""
    digest: str = ""
    """Of the body as it is stored: sha256:HEXADECIMAL."""
    job: str = ""
    route: str = ""
    file: str = ""
    """The object that holds the record."""
    offset: int = 0
    length: int = 0
    """Bytes of the compressed record."""
    is_revisit: bool = False
    """Its body is that of an earlier record of the same file."""

    @property
    def odd(self) -> str:
        """What no capture has, of an entry that was read: others may write into an archive. Empty: it is in order."""
        if _ID.fullmatch(self.id) is None:
            return "its id is not a UUID"
        if not 0.0 <= self.at <= LAST_MOMENT:
            return "its date is not one"
        if not 0 <= self.status < 1000:
            return "its status is not one"
        if len(self.url) + len(self.mime) + len(self.digest) + len(self.job) + len(self.route) > _LONGEST_TEXTS:
            return "its address is too long"
        return "" if 0 <= self.offset < 2**63 and 0 <= self.length <= LARGEST_RECORD else "its place is not one"


class ArchivedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A capture as it was read back."""

    entry: ArchiveEntry
    answer: Answer
    method: str = "GET"
    about: dict[str, Any] = {}


class ArchiveQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which captures; empty fields: all of them."""

    url: str = ""
    """Exactly this one, or what starts with it if it ends in `*`."""
    job: str = ""
    route: str = ""
    kind: CaptureKind | None = None
    since: Moment = 0.0
    until: Moment = LAST_MOMENT

    def fits(self, entry: ArchiveEntry) -> bool:
        return (
            self.since <= entry.at <= self.until
            and (not self.job or entry.job == self.job)
            and (not self.route or entry.route == self.route)
            and (self.kind is None or entry.kind is self.kind)
            and self._is_url(entry.url)
        )

    def _is_url(self, url: str) -> bool:
        if self.url.endswith("*"):
            return url.startswith(self.url[:-1])
        return not self.url or url == self.url


class ArchiveDamage(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    offset: int = 0
    what: str
    url: str = ""
    """Of the capture; empty: the file, or the rest of it."""

    @property
    def reason(self) -> str:
        """The same for all captures that are damaged alike."""
        return f"{self.file}: {self.what}"


class ArchiveCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check of everything."""

    files: int = 0
    captures: int = 0
    size: int = 0
    damages: tuple[ArchiveDamage, ...] = ()


class ArchiveTidied(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the small files of other writers."""

    files: int = 0
    """Large files that were made of them."""
    fresh: int = 0
    """Small files that stay: their writers wrote lately, and may be at work."""
    damaged: int = 0
    """Small files that stay: one of their writer cannot be read, or they are too large for one file."""


class ArchiveCut(msgspec.Struct, frozen=True, kw_only=True):
    """What a retention removed, or would remove."""

    files: int = 0
    size: int = 0
    captures: int = 0
    kept: int = 0
    """Files that stay."""

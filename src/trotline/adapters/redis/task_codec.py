"""Tasks as few bytes: what a queue of millions is made of.

    byte   1      version
    bytes  8      fingerprint
           2      attempts spent
           1, 1   deaths and kills: workers that died with it in their hands, or by it
           1      depth
           2      number of its form: what many tasks of a job share is stored once per job
           4      when it was made: milliseconds after the day before the job's start, plus one; 0: not here
           1      flags: what follows, and what was left out
    ...           the URL without scheme and lane where those say it; the parent as far as it differs from the URL;
                  and as msgpack whatever is not as usual

The Lua scripts know the first thirteen bytes. A reader that meets a version that it does not know says so: the task
is parked, never dropped.
"""

import struct
from collections.abc import Callable
from typing import Any

import msgspec

from trotline.model.task import Task
from trotline.model.task_json import LARGEST, Undecodable, UnknownVersion
from trotline.model.time import Moment

VERSION = 1

_HEAD = struct.Struct(">BqHBBBHIB")
_SHORT, _PARENT, _REST, _PARENT_SHORT = 1, 2, 4, 8
_LENGTH = struct.Struct(">H")
_PARCEL = struct.Struct("<iH")
_GRAVE = struct.Struct("<dI")
_SIZE = struct.Struct("<I")
_DAY = 86_400.0
_HALF, _STEP = 2.0**63, 2.0**34
_MOST_ATTEMPTS = 0xFFFF
_LONGEST = 0xFFFF
_FAR = 2**29
"""Priorities beyond it are as good as it: the scripts keep levels in four bytes, and a retry goes a few further."""
_RARE = {
    "key": "k", "not_before": "n", "session": "e", "chain": "h", "headers": "j", "body": "b", "hops": "i",
    "throttled": "g", "meta": "t",
}  # fmt: skip
"""Fields that are seldom other than usual, and their names in the rest."""
_USUAL = [(name, short, getattr(Task(url="", route=""), name)) for name, short in _RARE.items()]
_SCHEMES = {"https": "https://", "http": "http://", "": ""}

_encode = msgspec.msgpack.Encoder().encode


_SHARED_PRIORITIES = range(101)
"""Those that a form names. Forms are counted, priorities need not be: any other one travels with its task."""
_ELSEWHERE = 0
"""What the form says of those."""


class Form(msgspec.Struct, frozen=True, array_like=True):
    """What many tasks of a job share."""

    route: str
    site: str
    pool: str
    priority: int
    retries: int
    method: str
    scheme: str


encode_form = msgspec.msgpack.Encoder().encode
decode_form = msgspec.msgpack.Decoder(Form).decode


def form_of(task: Task) -> Form:
    url = task.url
    scheme = "https" if url.startswith("https://") else "http" if url.startswith("http://") else ""
    priority = task.priority if task.priority in _SHARED_PRIORITIES else _ELSEWHERE
    return Form(task.route, task.site, task.pool, priority, task.retries, task.method, scheme)


def level_of(task: Task) -> int:
    """The queue of its lane in which it waits: by priority, and behind it what needs credit because it is a retry."""
    return max(-_FAR, min(_FAR, task.priority)) * 2 + (task.attempt > 0)


def spread(fingerprint: int) -> int:
    """Where it lies between the smallest and the largest fingerprint, in steps of 2^34: that chooses its bucket among
    those ever seen. Computed with floats, as seen_exact.lua does: both must round alike."""
    return int((fingerprint + _HALF) / _STEP)


class Codec:
    """Packs and unpacks the tasks of one job."""

    def __init__(self, started_at: Moment) -> None:
        self._epoch = started_at - _DAY

    def pack(self, task: Task, form: int, scheme: str) -> bytes:
        """`form` is the number of its form. ValueError if it is more than any reader takes."""
        rest = {short: value for name, short, usual in _USUAL if (value := getattr(task, name)) != usual}
        start = f"{_SCHEMES[scheme]}{task.lane}" if scheme else ""
        flags = 0
        url = task.url
        if start and url.startswith(start):
            url, flags = url[len(start) :], _SHORT
        text = url.encode()
        created = self._created(task.created_at)
        attempt, depth = task.attempt, task.depth
        if task.priority not in _SHARED_PRIORITIES:
            rest["p"] = task.priority
        if not created and task.created_at:
            rest["c"] = task.created_at
        if not 0 <= attempt <= _MOST_ATTEMPTS:
            rest["a"], attempt = attempt - _MOST_ATTEMPTS, _MOST_ATTEMPTS
        if not 0 <= depth <= 255:
            rest["d"], depth = depth, 0
        if len(text) > _LONGEST or len(task.parent) > _LONGEST // 4:
            rest["u"], rest["q"], text, flags = task.url, task.parent, b"", 0
        elif task.parent:
            flags |= _PARENT
        tail = b""
        if rest:
            flags |= _REST
            tail = _encode(rest)
        body = text
        if flags & (_PARENT | _REST):
            body = _LENGTH.pack(len(text)) + text
            if flags & _PARENT:
                parent, short = self._parent(task.parent, start, text, bool(rest))
                body += parent
                flags |= short
            body += tail
        wire = _HEAD.pack(VERSION, task.fingerprint, attempt, 0, 0, depth, form, created, flags) + body
        if len(wire) > LARGEST:
            raise ValueError(f"a task of {len(wire):,} bytes is too large; {LARGEST:,} can be kept")
        return wire

    def _created(self, moment: Moment) -> int:
        ticks = round((moment - self._epoch) * 1000) + 1
        return ticks if 0 < ticks < 1 << 32 else 0

    def _parent(self, parent: str, start: str, url: bytes, more: bool) -> tuple[bytes, int]:
        """The parent as how many bytes it shares with the URL, and the bytes after those."""
        short = 0
        if start and parent.startswith(start):
            parent, short = parent[len(start) :], _PARENT_SHORT
        text = parent.encode()
        shared = len(text) if url.startswith(text) else text.rfind(b"/") + 1
        if not url.startswith(text[:shared]):
            shared = 0
        tail = text[shared:]
        size = _LENGTH.pack(len(tail)) if more else b""
        return _LENGTH.pack(shared) + size + tail, short

    def unpack(self, wire: bytes, lane: str, form: Callable[[int], Form]) -> tuple[Task, int]:
        """The task, and its kills; `Undecodable` says why not."""
        try:
            return self._unpack(wire, lane, form)
        except Undecodable:
            raise
        except (struct.error, msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise Undecodable(f"not a task: {str(error)[:200]}") from error

    def _unpack(self, wire: bytes, lane: str, form: Callable[[int], Form]) -> tuple[Task, int]:
        if not wire:
            raise Undecodable("no bytes")
        if len(wire) > LARGEST:
            raise Undecodable(f"larger than {LARGEST:,} bytes")
        if wire[0] != VERSION:
            raise UnknownVersion(f"task form {wire[0]} is not known to this version of Trotline (it knows {VERSION})")
        _, fingerprint, attempt, _, kills, depth, number, created, flags = _HEAD.unpack_from(wire)
        shared = form(number)
        start = f"{_SCHEMES[shared.scheme]}{lane}"
        text, parent, rest = wire[_HEAD.size :], b"", None
        if flags & (_PARENT | _REST):
            at = _HEAD.size + 2
            text = self._part(wire, at, _LENGTH.unpack_from(wire, at - 2)[0])
            at += len(text)
            if flags & _PARENT:
                parent, at = self._read_parent(wire, at, text, bool(flags & _REST))
            if flags & _REST:
                rest = _read_rest(wire[at:])
        url = text.decode()
        fields: dict[str, Any] = {
            "url": start + url if flags & _SHORT else url,
            "parent": start + parent.decode() if flags & _PARENT_SHORT else parent.decode(),
            "created_at": self._epoch + (created - 1) / 1000 if created else 0.0,
            "depth": depth,
            "priority": shared.priority,
        }
        if rest is not None:
            attempt += rest.attempts
            fields.update(rest.changed())
        task = Task(
            route=shared.route,
            site=shared.site,
            pool=shared.pool,
            retries=shared.retries,
            method=shared.method,
            lane=lane,
            fingerprint=fingerprint,
            attempt=attempt,
            **fields,
        )
        return task, kills

    def _part(self, wire: bytes, at: int, size: int) -> bytes:
        if at + size > len(wire):
            raise Undecodable("cut short")
        return wire[at : at + size]

    def _read_parent(self, wire: bytes, at: int, url: bytes, more: bool) -> tuple[bytes, int]:
        [shared] = _LENGTH.unpack_from(wire, at)
        at += 2
        size = len(wire) - at
        if more:
            [size] = _LENGTH.unpack_from(wire, at)
            at += 2
        return self._part(url, 0, shared) + self._part(wire, at, size), at + size


class _Rest(
    msgspec.Struct,
    forbid_unknown_fields=True,
    rename={**_RARE, "attempts": "a", "created_at": "c", "depth": "d", "url": "u", "parent": "q", "priority": "p"},
):
    """What the rest may be made of."""

    attempts: int = 0
    key: str | msgspec.UnsetType | None = msgspec.UNSET
    not_before: float | msgspec.UnsetType = msgspec.UNSET
    session: str | msgspec.UnsetType = msgspec.UNSET
    chain: str | msgspec.UnsetType = msgspec.UNSET
    headers: tuple[tuple[str, str], ...] | msgspec.UnsetType = msgspec.UNSET
    body: bytes | msgspec.UnsetType = msgspec.UNSET
    hops: int | msgspec.UnsetType = msgspec.UNSET
    throttled: int | msgspec.UnsetType = msgspec.UNSET
    meta: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    created_at: float | msgspec.UnsetType = msgspec.UNSET
    depth: int | msgspec.UnsetType = msgspec.UNSET
    priority: int | msgspec.UnsetType = msgspec.UNSET
    url: str | msgspec.UnsetType = msgspec.UNSET
    parent: str | msgspec.UnsetType = msgspec.UNSET

    def changed(self) -> dict[str, Any]:
        """The fields of the task that it says something about."""
        told = ((name, getattr(self, name)) for name in self.__struct_fields__ if name != "attempts")
        return {name: value for name, value in told if value is not msgspec.UNSET}


_read_rest = msgspec.msgpack.Decoder(_Rest).decode


def unwrap(parcel: bytes) -> tuple[int, str, bytes]:
    """Level, lane and blob of a task outside its queue."""
    level, size = _PARCEL.unpack_from(parcel)
    start = _PARCEL.size + size
    return level, parcel[_PARCEL.size : start].decode(errors="replace"), parcel[start:]


def open_grave(grave: bytes) -> tuple[Moment, str, str, bytes]:
    """When it died, why, the details, and the parcel."""
    died_at, size = _GRAVE.unpack_from(grave)
    at = _GRAVE.size
    why = grave[at : at + size].decode(errors="replace")
    at += size
    [size] = _SIZE.unpack_from(grave, at)
    at += _SIZE.size
    return died_at, why, grave[at : at + size].decode(errors="replace"), grave[at + size :]

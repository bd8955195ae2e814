"""Encodes tasks compactly, for queues of millions.

    byte   1      version
    bytes  8      fingerprint
           2      attempts spent
           1, 1   deaths and kills: workers that died while they held it, or because of it
           1      depth
           2      number of its template: fields that many tasks of a job share, stored once per job
           4      creation time: milliseconds after the day before the job's start, plus one; 0: in the rest
           1      flags: which parts follow
    ...           of a step of a chain the chain's name with its size (4 bytes): the scripts read it, too;
                  the URL, without scheme and lane if possible; the parent, without its common prefix with the URL;
                  the rest: fields with other than default values, as msgpack

The Lua scripts use the first fourteen bytes, and the chain. A task of an unknown version raises Undecodable, and is
parked, never dropped.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from trotline.model.proxy_pool import ACCOUNTS, VIA, base_pool
from trotline.model.task import Task
from trotline.model.task_json import LARGEST, Undecodable, check_format
from trotline.model.time import Moment
from trotline.rules import route_queues

VERSION = 1

_HEAD_FIELDS = {
    "version": "B", "fingerprint": "q", "attempt": "H", "deaths": "B", "kills": "B", "depth": "B", "template": "H",
    "created_at": "I", "flags": "B",
}  # fmt: skip
HEAD = struct.Struct(">" + "".join(_HEAD_FIELDS.values()))


def _in_head(first: str, last: str = "") -> slice:
    """The slice of a field of the head, or of several."""
    names = list(_HEAD_FIELDS)
    before, upto = names[: names.index(first)], names[: names.index(last or first) + 1]
    return slice(*(struct.calcsize(">" + "".join(map(_HEAD_FIELDS.__getitem__, some))) for some in (before, upto)))


FINGERPRINT = _in_head("fingerprint")
COUNTS = _in_head("attempt", "kills")
DEPTH = _in_head("depth")
TEMPLATE = _in_head("template")
FLAGS = _in_head("flags")
COUNTS_FORM = ">" + "".join(_HEAD_FIELDS[name] for name in ("attempt", "deaths", "kills"))
PARCEL = struct.Struct("<iH")
"""Level, bytes of the lane's name; then the lane and the blob."""
LEVEL_BYTES = 4
"""Size of the level in front of a parcel, and of a delayed task."""
GRAVE = struct.Struct("<dI")
"""When it died, bytes of the reason; then the reason, the detail with its size, and the parcel."""
REJECT = struct.Struct("<dI")
"""When a record was rejected, bytes of the record; then the record and the parcel of its page."""

DUE = struct.Struct("<d")
"""In front of the parcel of a step that waits for another one of its chain."""

SHORT, _PARENT, _REST, _PARENT_SHORT, CHAIN = 1, 2, 4, 8, 16
"""CHAIN is the largest: the scripts compare the flags with it. A step always has a rest, and thus its URL's size."""
_LENGTH = struct.Struct(">H")
_CHAIN_SIZE = struct.Struct(">I")
_CHAIN_STATE = struct.Struct("<BI")
CHAIN_FAILED = 1
"""Its mode after its head was buried (helpers/chains.lua)."""
_SIZE = struct.Struct("<I")
_DAY = 86_400.0
HALF, STEP = 2.0**63, 2.0**34
"""Half of the range of fingerprints, and the step of `spread`."""
_MOST_ATTEMPTS = 0xFFFF
_LONGEST = 0xFFFF
_FAR = 2**29
"""Priorities are clamped to it: levels have four bytes, and retries increase them."""
_SCHEMES = {"https": "https://", "http": "http://", "": ""}

_encode = msgspec.msgpack.Encoder().encode


_SHARED_PRIORITIES = range(101)
"""Priorities that are part of a template; others are stored with the task, as the number of templates is limited."""
_ELSEWHERE = 0
"""The template's value for those."""


class TaskTemplate(msgspec.Struct, frozen=True, array_like=True):
    """Fields that many tasks of a job share."""

    route: str
    site: str
    pool: str
    priority: int
    retries: int
    method: str
    scheme: str


encode_template = msgspec.msgpack.Encoder().encode
decode_template = msgspec.msgpack.Decoder(TaskTemplate).decode

_FIELDS = {field.name: field for field in msgspec.structs.fields(Task)}
_ELSEWHERE_TOO = ("url", "parent", "created_at", "depth", "priority")
"""Fields with a place of their own, which are in the rest if they do not fit there."""
_IN_REST = {
    name: field
    for name, field in _FIELDS.items()
    if name not in (*_HEAD_FIELDS, *_ELSEWHERE_TOO, *TaskTemplate.__struct_fields__, "lane", "chain")
}
"""All other fields, also future ones: part of the rest if they differ from the default."""
_USUAL = [(name, field.encode_name, getattr(Task(url="", route=""), name)) for name, field in _IN_REST.items()]
_LETTER = {name: _FIELDS[name].encode_name for name in (*_ELSEWHERE_TOO, "attempt")}
_Rest = msgspec.defstruct(
    "_Rest",
    [
        ("attempt", int, 0),
        *((name, _FIELDS[name].type | msgspec.UnsetType, msgspec.UNSET) for name in (*_ELSEWHERE_TOO, *_IN_REST)),
    ],
    rename={name: field.encode_name for name, field in _FIELDS.items()},
    forbid_unknown_fields=True,
)
"""The rest. Its `attempt` is the excess over the head's maximum."""
_read_rest: Callable[[bytes], Any] = msgspec.msgpack.Decoder(_Rest).decode


def template_of(task: Task) -> TaskTemplate:
    url = task.url
    scheme = "https" if url.startswith("https://") else "http" if url.startswith("http://") else ""
    priority = task.priority if task.priority in _SHARED_PRIORITIES else _ELSEWHERE
    return TaskTemplate(task.route, task.site, _shared_pool(task), priority, task.retries, task.method, scheme)


def _shared_pool(task: Task) -> str:
    """An account that the lane names is not part of the template, as the number of templates is limited."""
    pool = task.pool
    return base_pool(pool) if pool[:1] == ACCOUNTS and task.lane.endswith(f"{VIA}{pool}") else pool


def _own_pool(pool: str, lane: str) -> str:
    named = lane.rpartition(VIA)[2]
    return named if base_pool(named) == pool else pool


def spread(fingerprint: int) -> int:
    """Its position in the range of fingerprints, in steps of 2^34: determines its bucket in the duplicate filter.
    Computed with floats, as in helpers/seen_exact.lua: both must round alike."""
    return int((fingerprint + HALF) / STEP)


class TaskCodec:
    """Packs and unpacks the tasks of one job."""

    def __init__(self, started_at: Moment, queues: Sequence[str] = ()) -> None:
        """`queues`: routes with a queue of their own."""
        self._epoch = started_at - _DAY
        self._queues = {route: route_queues.number_of(queues, route) for route in queues}

    def level_of(self, task: Task) -> int:
        """The queue within its lane: by priority, and then retries, which need credit."""
        if not self._queues:
            return max(-_FAR, min(_FAR, task.priority)) * 2 + (task.attempt > 0)
        priority = max(-route_queues.FAR, min(route_queues.FAR, task.priority))
        number = self._queues.get(task.route, route_queues.OTHERS)
        return number * route_queues.SPAN + priority * 2 + (task.attempt > 0)

    def pack(self, task: Task, template: int, scheme: str) -> bytes:
        """`template`: the number of its template. Raises ValueError if the task is too large."""
        rest = {short: value for name, short, usual in _USUAL if (value := getattr(task, name)) != usual}
        start = _start(scheme, task.lane) if scheme else ""
        flags = 0
        url = task.url
        if start and url.startswith(start):
            url, flags = url[len(start) :], SHORT
        text = url.encode()
        created = self._created(task.created_at)
        attempt, depth = task.attempt, task.depth
        if task.priority not in _SHARED_PRIORITIES:
            rest[_LETTER["priority"]] = task.priority
        if not created and task.created_at:
            rest[_LETTER["created_at"]] = task.created_at
        if not 0 <= attempt <= _MOST_ATTEMPTS:
            rest[_LETTER["attempt"]], attempt = attempt - _MOST_ATTEMPTS, _MOST_ATTEMPTS
        if not 0 <= depth <= 255:
            rest[_LETTER["depth"]], depth = depth, 0
        if len(text) > _LONGEST or len(task.parent) > _LONGEST // 4:
            rest[_LETTER["url"]], rest[_LETTER["parent"]] = task.url, task.parent
            text, flags = b"", 0
        elif task.parent:
            flags |= _PARENT
        tail = head = b""
        if task.chain:
            name = task.chain.encode()
            flags |= CHAIN
            head = _CHAIN_SIZE.pack(len(name)) + name
        if rest or head:
            flags |= _REST
            tail = _encode(rest)
        body = text
        if flags & (_PARENT | _REST):
            body = _LENGTH.pack(len(text)) + text
            if flags & _PARENT:
                parent, short = self._parent(task.parent, start, text, bool(tail))
                body += parent
                flags |= short
            body = head + body + tail
        wire = HEAD.pack(VERSION, task.fingerprint, attempt, 0, 0, depth, template, created, flags) + body
        if len(wire) > LARGEST:
            raise ValueError(f"a task of {len(wire):,} bytes is too large; the limit is {LARGEST:,}")
        return wire

    def _created(self, moment: Moment) -> int:
        ticks = round((moment - self._epoch) * 1000) + 1
        return ticks if 0 < ticks < 1 << 32 else 0

    def _parent(self, parent: str, start: str, url: bytes, more: bool) -> tuple[bytes, int]:
        """The parent: the number of bytes it shares with the URL, and the remaining bytes."""
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

    def unpack(self, wire: bytes, lane: str, template: Callable[[int], TaskTemplate]) -> tuple[Task, int]:
        """The task, and its kills; raises `Undecodable`."""
        try:
            return self._unpack(wire, lane, template)
        except Undecodable:
            raise
        except (struct.error, msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise Undecodable(f"not a task: {str(error)[:200]}") from error

    def _unpack(self, wire: bytes, lane: str, template: Callable[[int], TaskTemplate]) -> tuple[Task, int]:
        check_format(wire, VERSION)
        _, fingerprint, attempt, _, kills, depth, number, created, flags = HEAD.unpack_from(wire)
        shared = template(number)
        start = _start(shared.scheme, lane)
        at, chain, parent, rest = HEAD.size, b"", b"", None
        if flags & CHAIN:
            chain = self._part(wire, at + 4, _CHAIN_SIZE.unpack_from(wire, at)[0])
            at += 4 + len(chain)
        text = wire[at:]
        if flags & (_PARENT | _REST):
            at += 2
            text = self._part(wire, at, _LENGTH.unpack_from(wire, at - 2)[0])
            at += len(text)
            if flags & _PARENT:
                parent, at = self._read_parent(wire, at, text, bool(flags & _REST))
            if flags & _REST:
                rest = _read_rest(wire[at:])
        url = text.decode()
        fields: dict[str, Any] = {
            "url": start + url if flags & SHORT else url,
            "parent": start + parent.decode() if flags & _PARENT_SHORT else parent.decode(),
            "created_at": self._epoch + (created - 1) / 1000 if created else 0.0,
            "depth": depth,
            "priority": shared.priority,
        }
        if chain:
            fields["chain"] = chain.decode()
        if rest is not None:
            attempt += rest.attempt
            fields.update(_stated(rest))
        task = Task(
            route=shared.route,
            site=shared.site,
            pool=_own_pool(shared.pool, lane) if shared.pool[:1] == ACCOUNTS else shared.pool,
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


def _stated(rest: Any) -> dict[str, Any]:
    """The fields of the task that the rest contains."""
    stated = ((name, getattr(rest, name)) for name in (*_ELSEWHERE_TOO, *_IN_REST))
    return {name: value for name, value in stated if value is not msgspec.UNSET}


class WrappedTask(NamedTuple):
    """A task outside its queue."""

    level: int
    lane: str
    blob: bytes


class BuriedTask(NamedTuple):
    """What a grave holds."""

    died_at: Moment
    why: str
    detail: str
    parcel: bytes


def _start(scheme: str, lane: str) -> str:
    """What most URLs of a lane begin with, and what is therefore not written."""
    return f"{_SCHEMES[scheme]}{lane.partition(VIA)[0] if VIA in lane else lane}"


class ChainState(NamedTuple):
    """What helpers/chains.lua keeps of a chain."""

    mode: int
    why: str
    """The reason with which its steps die."""
    parcel: bytes
    """Its head."""


def read_chain(packed: bytes) -> ChainState:
    mode, size = _CHAIN_STATE.unpack_from(packed)
    at = _CHAIN_STATE.size
    return ChainState(mode, packed[at : at + size].decode(errors="replace"), packed[at + size :])


def read_head(chain: bytes) -> bytes:
    """The parcel of a chain's head."""
    return read_chain(chain).parcel


def unwrap(parcel: bytes) -> WrappedTask:
    level, size = PARCEL.unpack_from(parcel)
    start = PARCEL.size + size
    return WrappedTask(level, parcel[PARCEL.size : start].decode(errors="replace"), parcel[start:])


def open_grave(grave: bytes) -> BuriedTask:
    died_at, size = GRAVE.unpack_from(grave)
    at = GRAVE.size
    why = grave[at : at + size].decode(errors="replace")
    at += size
    [size] = _SIZE.unpack_from(grave, at)
    at += _SIZE.size
    return BuriedTask(died_at, why, grave[at : at + size].decode(errors="replace"), grave[at + size :])

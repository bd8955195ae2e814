"""Messages of a brokered frontier: JSON that other programs can read.

    {"v": 1, "parcels": [{"id": "0.p51c3.7.1", "tasks": [{"task_id": "00c5...", "url": "https://...", ...}]}]}

Tasks have the field names of seeds (`model.task_json`), without fields that have their default; `task_id` is the
identity.
A task with `meta` that JSON would change (bytes, NaN) is in `wire`: its wire form in base64.

Other programs may write to the broker, too: every value of a message is checked before it reaches the books.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from trotline.model import task_json
from trotline.model.proxy_pool import VIA
from trotline.model.task import Task
from trotline.model.task_json import SEED_NAMES_BACK, Undecodable, UnknownVersion
from trotline.ports.broker_books import Parcel
from trotline.rules import task_checks
from trotline.rules.broker_shelves import PARCEL_TASKS
from trotline.rules.task_checks import InvalidValue

VERSION = 1
LARGEST = 16 * 1024 * 1024
"""Bytes of a message that is read."""
LARGEST_TASK = 1024 * 1024
"""Bytes of a task in a message: a parcel has at most PARCEL_BYTES, which JSON makes six times as many at most, and
what its tasks share."""

_IDENTITY = Task.__struct_fields__.index("fingerprint")
_FIELDS = [field for field in msgspec.structs.fields(Task) if field.name != "fingerprint"]
_NAMES = [field.name for field in _FIELDS]
_DEFAULTS = Task(url="", route="")


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return getattr(_DEFAULTS, field.name)


_Body = msgspec.defstruct(
    "_Body",
    [
        ("task_id", str, ""),
        ("wire", bytes, b""),
        *((SEED_NAMES_BACK.get(field.name, field.name), field.type, _default(field)) for field in _FIELDS),
    ],
    omit_defaults=True,
    forbid_unknown_fields=True,
)


class _Parcel(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    tasks: list[_Body]  # type: ignore[valid-type]


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    v: int
    parcels: list[_Parcel]


class _RawParcel(msgspec.Struct):
    tasks: list[msgspec.Raw]


class _RawMessage(msgspec.Struct):
    parcels: list[_RawParcel]


class _Version(msgspec.Struct):
    v: Any = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Message)
_raw_decoder = msgspec.json.Decoder(_RawMessage)
_version = msgspec.json.Decoder(_Version)
_any = msgspec.json.Decoder()


def encode(parcels: Sequence[Parcel]) -> bytes:
    return _encoder.encode(
        _Message(VERSION, [_Parcel(parcel.id, [_body(task) for task in parcel.tasks]) for parcel in parcels])
    )


def decode(body: bytes, shelf: str) -> list[Parcel]:
    """The parcels of a message; raises `Undecodable`."""
    if len(body) > LARGEST:
        raise Undecodable(f"larger than {LARGEST:,} bytes")
    try:
        version = _version.decode(body).v
        if version != VERSION:
            raise UnknownVersion(f"version {str(version)[:20]} is not supported (only {VERSION})")
        _check_sizes(body)
        found = _decoder.decode(body)
        if sum(len(one.tasks) for one in found.parcels) > PARCEL_TASKS:
            raise Undecodable(f"more than {PARCEL_TASKS} tasks")
        return [Parcel(one.id, shelf, tuple(map(_task, one.tasks))) for one in found.parcels]
    except Undecodable:
        raise
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Undecodable(f"not a message of Trotline: {str(error)[:200]}") from error


def _check_sizes(body: bytes) -> None:
    """Values of any length may be in a task: the books could not store it."""
    if len(body) <= LARGEST_TASK:
        return
    tasks = chain.from_iterable(parcel.tasks for parcel in _raw_decoder.decode(body).parcels)
    if any(len(memoryview(task)) > LARGEST_TASK for task in tasks):
        raise Undecodable(f"a task of more than {LARGEST_TASK:,} bytes")


def _body(task: Task) -> Any:
    if task.meta and not _is_plain(task.meta):
        return _Body(task.id, task_json.encode(task))
    values = msgspec.structs.astuple(task)
    return _Body(task.id, b"", *values[:_IDENTITY], *values[_IDENTITY + 1 :])


def _is_plain(meta: dict[str, Any]) -> bool:
    """Does it survive JSON?"""
    try:
        return bool(_any.decode(_encoder.encode(meta)) == meta)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return False


def _task(body: Any) -> Task:
    task = task_json.decode(body.wire) if body.wire else _of_fields(body)
    if not task.url:
        raise Undecodable("a task without a URL")
    try:
        return _checked(task)
    except InvalidValue as error:
        raise Undecodable(str(error)) from error


def _checked(task: Task) -> Task:
    """A lane may have its name's length, and the name of its pool besides."""
    lane, via, pool = task.lane.rpartition(VIA)
    if not via:
        return task_checks.task(task)
    task_checks.checked("the pool of a task's lane", pool, task_checks.pool)
    plain = task_checks.task(msgspec.structs.replace(task, lane=lane))
    return msgspec.structs.replace(plain, lane=task.lane)


def _of_fields(body: Any) -> Task:
    values = dict(zip(_NAMES, msgspec.structs.astuple(body)[2:], strict=True))
    unsigned = int(body.task_id, 16)
    if not 0 <= unsigned < 1 << 64:
        raise Undecodable("a task without an identity")
    return Task(fingerprint=unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned, **values)

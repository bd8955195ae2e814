"""Codec of tasks: bytes between processes, and the JSON form of seeds.

Wire form: one version byte, then a msgpack map with short names and without defaults. Tasks of an unknown version
(`UnknownVersion`) are parked, never dropped.
"""

import re
from typing import Any

import msgspec

from trotline.model.task import Task
from trotline.model.time import Moment, from_iso, iso

VERSION = 1
LARGEST = 4 * 1024 * 1024
"""Maximum bytes of a task with its body and meta."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Task)
_HEAD = bytes([VERSION])
_FIELDS = Task.__struct_fields__
_SHORT = dict(zip(_FIELDS, Task.__struct_encode_fields__, strict=True))
_DEFAULTS = Task(url="", route="")


class Undecodable(ValueError):
    """Bytes that cannot be decoded as a task."""


class UnknownVersion(Undecodable):
    """A task of a wire version that this program does not support."""


def encode(task: Task) -> bytes:
    """The task as bytes; ValueError if it is too large."""
    wire = _HEAD + _encoder.encode(task)
    if len(wire) > LARGEST:
        raise ValueError(f"a task of {len(wire):,} bytes is too large; the limit is {LARGEST:,}")
    return wire


def decode(wire: bytes) -> Task:
    """The task in `wire`; raises `Undecodable` for anything else that a store may return, also a number."""
    if not isinstance(wire, bytes | bytearray | memoryview):
        raise Undecodable(f"not bytes but a {type(wire).__name__}")
    check_format(wire, VERSION)
    try:
        return _decoder.decode(memoryview(wire)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Undecodable(f"not a task: {error}") from error


def check_format(wire: bytes, version: int) -> None:
    """Is it a task of that wire version, by its size and first byte? Raises `Undecodable`."""
    if not wire:
        raise Undecodable("no bytes")
    if len(wire) > LARGEST:
        raise Undecodable(f"larger than {LARGEST:,} bytes")
    if wire[0] != version:
        raise UnknownVersion(f"task format {wire[0]} is not supported by this version of Trotline (only {version})")


SEED_VERSION = 1
"""Of the JSON form: `"v": 1`. Without a version it is this one."""
_SEED_NAMES = {
    "job_type": "route",
    "site_id": "site",
    "retry_count": "attempt",
    "max_retries": "retries",
    "proxy_pool": "pool",
}
_STATE = {"hops", "throttled", "blocked_by", "first_url", "client"}
"""What exported tasks have, and no producer writes."""
_ALWAYS_SHOWN = {"url", "route", "depth", "attempt", "retries"}
SEED_NAMES_BACK = {ours: theirs for theirs, ours in _SEED_NAMES.items()}


def from_seed(data: dict[str, Any]) -> Task:
    """A task from a seed's JSON object; only `url` is required. `task_id` is accepted and ignored: the URL is the
    identity. `UnknownVersion`: written for another version of this form."""
    _check_seed_version(data.get("v", SEED_VERSION))
    fields = {_SEED_NAMES.get(name, name): value for name, value in data.items() if name not in ("task_id", "v")}
    for name in ("created_at", "not_before"):
        if isinstance(fields.get(name), str):
            fields[name] = _moment(name, fields[name])
    if isinstance(fields.get("site"), int):
        fields["site"] = str(fields["site"])
    if isinstance(fields.get("headers"), dict):
        fields["headers"] = [list(pair) for pair in fields["headers"].items()]
    fields.setdefault("route", "")
    unknown = set(fields) - set(_FIELDS)
    if unknown:
        raise Undecodable(f"unknown field {sorted(unknown)[0]!r}; known are v, task_id, {', '.join(_written())}")
    try:
        return msgspec.convert({_SHORT[name]: value for name, value in fields.items()}, Task)
    except msgspec.ValidationError as error:
        raise Undecodable(_in_seed_names(str(error))) from error


def _check_seed_version(version: Any) -> None:
    if type(version) is not int or version != SEED_VERSION:
        raise UnknownVersion(
            f'v is {str(version)[:20]!r}: this version of Trotline reads tasks with "v": {SEED_VERSION} only'
        )


def _moment(name: str, text: str) -> Moment:
    try:
        return from_iso(text)
    except ValueError as error:
        raise Undecodable(f"{name}: {error}") from error


def _in_seed_names(message: str) -> str:
    """Replaces short field names in a message: `$.d` becomes `depth`."""
    long = {short: SEED_NAMES_BACK.get(name, name) for name, short in _SHORT.items()}
    return re.sub(r"(\$\.|field `)(\w+)", lambda found: found[1].strip("$.") + long.get(found[2], found[2]), message)


def to_seed(task: Task) -> dict[str, Any]:
    """The task as a seed's JSON object, with our additional fields."""
    shown: dict[str, Any] = {"v": SEED_VERSION, "task_id": task.id}
    for name in _FIELDS:
        value = getattr(task, name)
        if name in _ALWAYS_SHOWN or (value != getattr(_DEFAULTS, name) and name != "fingerprint"):
            shown[SEED_NAMES_BACK.get(name, name)] = msgspec.to_builtins(value)
    for name in ("created_at", "not_before"):
        if name in shown:
            shown[name] = iso(shown[name])
    if task.site.isdecimal() and str(int(task.site)) == task.site:
        # It was given as a number.
        shown["site_id"] = int(task.site)
    return shown


def _written() -> list[str]:
    return [name for name in seed_names() if name not in _STATE]


def seed_names() -> list[str]:
    """The field names of the JSON form, as `trotline` prints them."""
    return [SEED_NAMES_BACK.get(name, name) for name in _FIELDS if name != "fingerprint"]

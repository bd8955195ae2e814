"""Tasks as bytes between processes, and as the JSON that people and the seed documents write.

Wire form: one byte of version, then a msgpack map with short names and no defaults. A reader that meets
a version it does not know says so (`UnknownVersion`): the task is parked, never dropped.
"""

import re
from typing import Any

import msgspec

from trotline.model.task import Task
from trotline.model.time import Moment, from_iso, iso

VERSION = 1
LARGEST = 4 * 1024 * 1024
"""Bytes of a task, its body and its meta included."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Task)
_HEAD = bytes([VERSION])
_FIELDS = Task.__struct_fields__
_SHORT = dict(zip(_FIELDS, Task.__struct_encode_fields__, strict=True))
_DEFAULTS = Task(url="", route="")


class Undecodable(ValueError):
    """Bytes that are no task: damaged, foreign, or of the wrong shape."""


class UnknownVersion(Undecodable):
    """Bytes of a task form that this version does not know."""


def encode(task: Task) -> bytes:
    """The task as bytes; ValueError if they are more than any reader takes."""
    wire = _HEAD + _encoder.encode(task)
    if len(wire) > LARGEST:
        raise ValueError(f"a task of {len(wire):,} bytes is too large; {LARGEST:,} can be kept")
    return wire


def decode(wire: bytes) -> Task:
    """The task in `wire`; `Undecodable` says why not. Whatever a store gives back is welcome here, also a number."""
    if not isinstance(wire, bytes | bytearray | memoryview):
        raise Undecodable(f"not bytes but a {type(wire).__name__}")
    if not wire:
        raise Undecodable("no bytes")
    if len(wire) > LARGEST:
        raise Undecodable(f"larger than {LARGEST:,} bytes")
    if wire[0] != VERSION:
        raise UnknownVersion(f"task form {wire[0]} is not known to this version of Trotline (it knows {VERSION})")
    try:
        return _decoder.decode(memoryview(wire)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Undecodable(f"not a task: {error}") from error


_SEED_NAMES = {
    "job_type": "route",
    "site_id": "site",
    "retry_count": "attempt",
    "max_retries": "retries",
    "proxy_pool": "pool",
}
_ALWAYS_SHOWN = {"url", "route", "depth", "attempt", "retries"}
_SEED_NAMES_BACK = {ours: theirs for theirs, ours in _SEED_NAMES.items()}


def from_seed(data: dict[str, Any]) -> Task:
    """A task from the seed documents' JSON object. `task_id` is accepted and forgotten: identity is the URL's."""
    fields = {_SEED_NAMES.get(name, name): value for name, value in data.items() if name != "task_id"}
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
        raise Undecodable(f"unknown field {sorted(unknown)[0]!r}; known are task_id, {', '.join(seed_names())}")
    try:
        return msgspec.convert({_SHORT[name]: value for name, value in fields.items()}, Task)
    except msgspec.ValidationError as error:
        raise Undecodable(_in_seed_names(str(error))) from error


def _moment(name: str, text: str) -> Moment:
    try:
        return from_iso(text)
    except ValueError as error:
        raise Undecodable(f"{name}: {error}") from error


def _in_seed_names(message: str) -> str:
    """`$.d` as whoever wrote the seed knows it: `depth`."""
    long = {short: _SEED_NAMES_BACK.get(name, name) for name, short in _SHORT.items()}
    return re.sub(r"(\$\.|field `)(\w+)", lambda found: found[1].strip("$.") + long.get(found[2], found[2]), message)


def to_seed(task: Task) -> dict[str, Any]:
    """The seed documents' JSON object for `task`, with our fields beside theirs."""
    shown: dict[str, Any] = {"task_id": task.id}
    for name in _FIELDS:
        value = getattr(task, name)
        if name in _ALWAYS_SHOWN or (value != getattr(_DEFAULTS, name) and name != "fingerprint"):
            shown[_SEED_NAMES_BACK.get(name, name)] = msgspec.to_builtins(value)
    for name in ("created_at", "not_before"):
        if name in shown:
            shown[name] = iso(shown[name])
    if task.site.isdecimal() and str(int(task.site)) == task.site:
        # It came as a number, and whoever counts sites wants one back.
        shown["site_id"] = int(task.site)
    return shown


def seed_names() -> list[str]:
    """The field names of the JSON form, as `trotline` prints them."""
    return [_SEED_NAMES_BACK.get(name, name) for name in _FIELDS if name != "fingerprint"]

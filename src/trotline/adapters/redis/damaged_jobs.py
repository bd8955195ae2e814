"""Jobs whose entry or keys were changed by another program: detected, and deleted by the names of their keys."""

import contextlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.delete_job import forget, return_members
from trotline.adapters.redis.server_calls import Server
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.job import Job
from trotline.rules.unreadable_jobs import way_out
from trotline.rules.untrusted_values import is_moment

_STEP = 1000
_MISREAD = (msgspec.MsgspecError, struct.error, ValueError, TypeError, OverflowError, LookupError, RecursionError)
"""Errors of decoding such values."""


class Unreadable(FrontierError):
    """The data of a job on the server is not what Trotline wrote."""


@contextmanager
def named(job_id: str) -> Iterator[None]:
    """Turns errors of reading a job into Unreadable, which names it; except for an unreachable server."""
    try:
        yield
    except FrontierUnreachable:
        raise
    except (FrontierError, *_MISREAD) as error:
        what, hint = way_out(job_id)
        raise Unreadable(what, hint=hint) from error


@contextmanager
def readable(job_id: str) -> Iterator[None]:
    """The same for decoding errors only."""
    try:
        yield
    except _MISREAD as error:
        what, hint = way_out(job_id)
        raise Unreadable(what, hint=hint) from error


def decode_job(kept: bytes, job_id: str) -> Job:
    """The entry of this job; ValueError if it belongs to another one."""
    job = msgspec.json.decode(kept, type=Job)
    if job.id != job_id:
        raise ValueError(f"the entry is that of {job.id!r}")
    if not all(map(is_moment, (job.started_at, job.finished_at, job.cancelled_at))):
        raise ValueError("the entry has a time that does not exist")
    return job


def id_text(raw: bytes) -> str:
    """A job's id in printable form, also an invalid one."""
    text = raw.decode("latin-1")
    return text if _is_id(text) else text.encode("unicode_escape").decode()


def _is_id(text: str) -> bool:
    try:
        keys.prefix(text, 0)
    except FrontierError:
        return False
    return True


def is_escaped(job_id: str) -> bool:
    return "\\" in job_id


async def forget_keys(server: Server, job_id: str) -> None:
    """Delete the keys of a job, also if they cannot be read."""
    if not _is_id(job_id):
        # Not a valid id, so it has no keys.
        return
    try:
        await forget(server, job_id)
    except FrontierUnreachable:
        raise
    except (FrontierError, *_MISREAD):
        await _sweep(server, job_id)


async def _return_members(server: Server, job_id: str, key: bytes) -> None:
    """Of proxy pools and accounts, as far as the job's data can be read: they are missed in lanes of other jobs."""
    name = key.decode("latin-1")
    if f":{job_id}:held:" in name:
        with contextlib.suppress(FrontierError, *_MISREAD):
            await return_members(server, name)


async def _sweep(server: Server, job_id: str) -> None:
    """Scans the whole server, as the job's own data cannot be trusted."""

    async def scan() -> list[bytes]:
        return [key async for key in server.client.scan_iter(match=f"trotline:{{*}}:{job_id}:*", count=_STEP)]

    number = job_id.rpartition("-")[2]
    found = await server.plain(scan)
    for key in found:
        await _return_members(server, job_id, key)
    for key in found:
        await server.ask("UNLINK", key)
        await server.ask("HDEL", f"{key.decode('latin-1').partition('}')[0]}}}:jobs", number)

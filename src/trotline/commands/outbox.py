"""Outboxes as operators see them: what waits there for a writer, and what no writer could store."""

from contextlib import suppress
from typing import TYPE_CHECKING

from trotline.config.urls import REDIS, public, scheme_of
from trotline.errors import FrontierError, SettingsError, SinkError

if TYPE_CHECKING:
    from trotline.adapters.redis.outbox import Outbox, Parked


def open_outbox(url: str) -> "Outbox":
    if not url or scheme_of(url) not in REDIS:
        raise SettingsError(
            f"{public(url)} is no outbox" if url else "no outbox is named",
            hint="Name it: --from redis://HOST:PORT/0?outbox=results",
        )
    from trotline.adapters.redis.outbox import Outbox

    return Outbox(url)


async def parked(url: str) -> "list[Parked]":
    outbox = open_outbox(url)
    try:
        return await outbox.parked()
    finally:
        await outbox.close()


async def again(url: str) -> int:
    outbox = open_outbox(url)
    try:
        return await outbox.again()
    finally:
        await outbox.close()


async def unwritten(frontier: str) -> dict[str, int]:
    """Job -> parcels of its results that wait for a writer, on the frontier's own server. A server that does not answer
    this question is no reason to say nothing else."""
    if scheme_of(frontier) not in REDIS:
        return {}
    from trotline.adapters.redis.outbox import unwritten as look

    with suppress(FrontierError, SinkError):
        return await look(frontier)
    return {}

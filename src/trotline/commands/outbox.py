"""Outboxes as operators see them: what waits there for a writer, and what no writer could store."""

from trotline.config import backends
from trotline.model.parcel import Parked


async def parked(url: str) -> list[Parked]:
    outbox = backends.open_outbox(url)
    try:
        return await outbox.parked()
    finally:
        await outbox.close()


async def again(url: str) -> int:
    outbox = backends.open_outbox(url)
    try:
        return await outbox.again()
    finally:
        await outbox.close()

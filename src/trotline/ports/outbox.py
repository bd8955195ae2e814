"""Results that wait for a writer: for workers that must not reach the database."""

from collections.abc import Sequence
from typing import Protocol

from trotline.model.outbox_parcel import Parked, Taken, Waiting
from trotline.model.record import Record
from trotline.model.time import Seconds


class Outbox(Protocol):
    """O1 a parcel is held by one writer at a time; one that is silent for `lease` loses it to the others
    O2 a parcel is removed only by `done`, or is kept by `park` until `again`
    O3 every verb raises SinkUnreachable while the server is unreachable, and may be repeated
    """

    @property
    def lease(self) -> Seconds: ...

    async def open(self) -> None: ...

    async def take(self) -> list[Taken]:
        """The oldest parcels; nothing if none waits."""
        ...

    async def keep(self, taken: Sequence[Taken]) -> None:
        """Renew the leases."""
        ...

    async def give_back(self, taken: Sequence[Taken]) -> None:
        """The next writer that asks gets them."""
        ...

    async def done(self, taken: Sequence[Taken]) -> None:
        """They are stored."""
        ...

    async def park(self, taken: Sequence[Taken], why: str) -> None:
        """They cannot be stored by this program, and are kept for one that can, or for a person."""
        ...

    async def park_records(self, job: str, records: Sequence[Record], why: str) -> None:
        """Records that the database refuses, without those that came with them."""
        ...

    async def parked(self, limit: int = 100) -> list[Parked]: ...

    async def again(self) -> int:
        """What was parked waits again; how many parcels that were."""
        ...

    async def waiting(self, job: str = "") -> Waiting:
        """What is not written yet, held by a writer or not; of one job if it is named."""
        ...

    async def close(self) -> None: ...

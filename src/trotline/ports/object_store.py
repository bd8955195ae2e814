"""Where whole objects are kept: what an archive needs of the place that holds its files."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from trotline.model.time import Moment


class StoredObject(NamedTuple):
    name: str
    size: int
    modified: Moment
    """By the clock of the place."""


class ObjectStore(Protocol):
    """Whole objects by name. A `put` that returned is durable; one that did not leaves the whole object or none. Every
    verb raises `ArchiveUnreachable`; an object that is missing is a `KeyError`."""

    async def check(self) -> None:
        """Can it be used? Says so before any page is fetched."""
        ...

    async def put(self, name: str, data: bytes) -> None: ...

    async def put_file(self, name: str, file: Path) -> None:
        """A file that may be larger than the memory."""
        ...

    async def join(self, name: str, parts: Sequence[str]) -> None:
        """Put one object with the content of others, in this order. `KeyError` if one of them is missing: then it is
        not put."""
        ...

    async def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Less than `length` is all that there is; from its end on there is nothing. `ArchiveDamaged` if this object
        alone cannot be read."""
        ...

    async def listed(self, prefix: str) -> list[StoredObject]:
        """Those in a folder; all without a name. Sorted by name. `ArchiveError` if one has a name that cannot be read:
        it is named."""
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Missing ones are no error."""
        ...

    async def close(self) -> None: ...

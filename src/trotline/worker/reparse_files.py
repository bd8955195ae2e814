"""Files that handlers keep of archived pages: what the archive has already is not written again."""

import hashlib
from collections.abc import Sequence

from trotline.model.archive import ArchiveDamage, ArchivedPage, ArchiveQuery, Capture, CaptureKind
from trotline.model.harvest import Artifact
from trotline.ports.archive import Archive


class ReparseFiles:
    """Of one archive, for all units that a process parses. The address of a file has the hash of its content: files
    with the same address are equal."""

    def __init__(self) -> None:
        self._known: set[bytes] | None = None
        """Hashes of their addresses. None: nothing was kept yet, and the archive was not asked."""

    async def write(self, archive: Archive, page: ArchivedPage, kept: Sequence[Artifact]) -> None:
        if not kept:
            return
        if self._known is None:
            wanted = ArchiveQuery(kind=CaptureKind.ARTIFACT)
            self._known = {_hash(entry.url) async for entry in archive.entries(wanted, _damaged)}
        new = {key: one for one in kept if (key := _hash(one.address)) not in self._known}
        await archive.write([_capture(page, key, one) for key, one in new.items()])
        self._known |= new.keys()


def _damaged(damage: ArchiveDamage) -> None:
    """What cannot be read is written again."""


def _hash(address: str) -> bytes:
    return hashlib.blake2b(address.encode(), digest_size=16).digest()


def _capture(page: ArchivedPage, key: bytes, artifact: Artifact) -> Capture:
    """Its id is that of its content: it is found once, also if two processes write it."""
    return Capture(
        id=key.hex(),
        kind=CaptureKind.ARTIFACT,
        url=artifact.address,
        at=page.entry.at,
        job=page.entry.job,
        route=page.entry.route,
        type=artifact.type,
        body=artifact.data,
        about={"page": page.entry.url},
    )

"""How other programs read a WARC file, digests included: how many records they find."""

import warnings
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator

with warnings.catch_warnings():
    # About classes that it still has for its old users.
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator as FastIterator


def by_warcio(file: Path) -> int:
    """Raises if a digest is not right."""
    with file.open("rb") as stream:
        return sum(_was_read(record) for record in ArchiveIterator(stream, check_digests="raise"))


def _was_read(record: Any) -> bool:
    record.content_stream().read()
    return True


def by_fastwarc(file: Path) -> int:
    """Those whose digest is right, or which have none."""
    with file.open("rb") as stream:
        return sum(_fits(record) for record in FastIterator(stream))


def _fits(record: Any) -> bool:
    kind = record.headers.get("WARC-Type")
    if kind == "resource":
        return bool(record.verify_block_digest())
    return bool(record.verify_payload_digest()) if kind == "response" else True

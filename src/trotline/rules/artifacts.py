"""Files that handlers keep in the archive: their addresses and limits."""

import hashlib
import re
from collections.abc import Sequence

from trotline.model.harvest import Artifact
from trotline.model.limits import MIB

MOST_BYTES = 32 * MIB
"""Of all files that are kept of one page."""
_NAME = re.compile(r"[\w.-][\w. -]{0,99}", re.ASCII)
_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(; ?[\w-]+=[\w.+-]+)?", re.ASCII)


def artifact(name: str, data: bytes | str, kind: str) -> Artifact:
    """ValueError or TypeError says what is wrong; the handler fails with it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"page.keep: {name!r} is not a file name: letters, digits, . _ - and spaces, at most 100")
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        raise ValueError(f"page.keep: {kind!r} is not a content type")
    raw = data.encode() if isinstance(data, str) else data
    if not isinstance(raw, bytes):
        raise TypeError(f"page.keep: bytes or text, not {type(data).__name__}")
    digest = hashlib.sha256(raw).hexdigest()
    return Artifact(address=f"archive:sha256-{digest}/{name.replace(' ', '%20')}", type=kind, data=raw)


def check_total(kept: Sequence[Artifact]) -> None:
    total = sum(len(one.data) for one in kept)
    if total > MOST_BYTES:
        raise ValueError(f"page.keep: {total} bytes of one page are over the limit of {MOST_BYTES // MIB} MiB")

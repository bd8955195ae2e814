"""Files that a spider downloads."""

import msgspec

from trotline.model.keyword_structs import NamedValues

FILE_ROUTE = "file"
"""The route of downloads."""
MIB = 1024 * 1024


class Files(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedValues):
    """Where downloads go, and which are accepted: `Spider(files=Files(folder="pictures", images=True))`."""

    folder: str
    """Of the worker's machine, made if it is missing; or `s3://BUCKET/PREFIX`."""
    largest: int = 100 * MIB
    """Bytes of one file."""
    types: tuple[str, ...] = ()
    """Accepted content types; empty: all, or all images."""
    images: bool = False
    """Accept images only, and check that they are. Needs the extra `images`."""
    pixels: int = 50_000_000
    """Of an image, width x height: a small file can be a huge picture."""


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was stored, named after its content."""

    path: str
    """In the store: "ab/ab12....jpg"."""
    sha256: str
    size: int
    type: str
    width: int = 0
    height: int = 0
    """Of an image that was checked."""

"""Downloads: the route that every spider with `files=` has, and the record of each file."""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trotline.model.record import Record
from trotline.model.stored_file import FILE_ROUTE, Files
from trotline.rules import content_types
from trotline.rules.task_checks import shown
from trotline.spider.page import Page
from trotline.spider.spider_checks import Checks

if TYPE_CHECKING:
    from trotline.model.task import Task

IMAGES = ("image/*",)
_HINT = 'Give a folder or s3://BUCKET/PREFIX, or Files(folder="pictures", images=True).'


def checked(check: Checks, given: Any) -> Files | None:
    """The rules of downloads; None: the spider has none."""
    if given is None:
        return None
    files = Files(folder=given) if isinstance(given, str) else given
    if not isinstance(files, Files) or not isinstance(files.folder, str) or not files.folder:
        raise check.refuse(f"files is {shown(given)}", _HINT)
    check.number("files: largest", files.largest, least=1)
    check.number("files: pixels", files.pixels, least=1)
    if files.images:
        check.package("files: images=True", "PIL", "images")
    types = files.types or (IMAGES if files.images else content_types.EVERYTHING)
    return Files(
        folder=files.folder,
        largest=files.largest,
        types=check.types("files: types", types),
        images=files.images,
        pixels=files.pixels,
    )


def download(page: Page, href: str, fields: Any) -> "Task":
    """A task of the route of files."""
    url = page.urljoin(href)
    meta = {**fields.pop("meta", {}), "asked": url, "page": page.url}
    # Compressed bodies are read in memory; files are compressed already, mostly.
    fields.setdefault("headers", {"accept-encoding": "identity"})
    return page.task(url, FILE_ROUTE, meta=meta, **fields)


def read_file(page: Page) -> Iterator[Record]:
    """The record of one file. In `trotline try` it is not stored, and has no path."""
    stored = page.file
    kind = page.headers.get("content-type", "").partition(";")[0].strip().lower()
    data: dict[str, Any] = {
        "url": page.meta.get("asked", page.url),
        "path": None if stored is None else stored.path,
        "type": kind if stored is None else stored.type,
        "size": len(page.body) if stored is None else stored.size,
        "sha256": hashlib.sha256(page.body).hexdigest() if stored is None else stored.sha256,
        "page": page.meta.get("page"),
    }
    if stored is not None and stored.width:
        data |= {"width": stored.width, "height": stored.height}
    yield page.record(FILE_ROUTE, data["url"], data)

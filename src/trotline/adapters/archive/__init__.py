"""Archives: raw responses in WARC files. `file:` is a folder; other places of objects use the same archive."""

from trotline.ports.archive import Archive
from trotline.ports.backend import ArchiveOffer, Backend
from trotline.rules import archive_urls
from trotline.rules.backend_urls import path_of


def _parse(text: str) -> str:
    url = archive_urls.read(text)
    if not path_of(url.place):
        raise ValueError('it names no folder; write "file:FOLDER"')
    return text.strip()


def _open(url: str, writer: str) -> Archive:
    from pathlib import Path

    from trotline.adapters.archive.archive import ObjectArchive, rolls
    from trotline.adapters.archive.folder_store import FolderStore

    read = archive_urls.read(url)
    return ObjectArchive(FolderStore(Path(path_of(read.place))), writer, **rolls(read))


BACKEND = Backend(
    name="folder archive",
    schemes=("file",),
    local=True,
    archive=ArchiveOffer(forms=("file:FOLDER",), parse=_parse, open=_open),
)

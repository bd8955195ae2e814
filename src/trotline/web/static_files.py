"""Style sheets and scripts of the package. Their URLs have a hash of the content: a browser may keep them for ever."""

from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

MEDIA = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "ico": "image/x-icon", "png": "image/png"}
FOREVER = "public, max-age=31536000, immutable"
_HASH = 16


class File(NamedTuple):
    url: str
    media: str
    content: bytes


class StaticFiles:
    """All of them in memory: they are few and small, and no path of a request ever reaches the disk."""

    def __init__(self) -> None:
        folder = files("trotline.web") / "static"
        found = [(file.name, file.read_bytes()) for file in folder.iterdir() if file.name.partition(".")[2] in MEDIA]
        self._files = {name: _file(name, content) for name, content in found}
        self._by_url = {file.url: file for file in self._files.values()}

    def url(self, name: str) -> str:
        """For templates; KeyError if there is no such file."""
        return self._files[name].url

    def at(self, url: str) -> File | None:
        return self._by_url.get(url)


def _file(name: str, content: bytes) -> File:
    number = sha256(content).hexdigest()[:_HASH]
    return File(f"/static/{number}/{name}", MEDIA[name.partition(".")[2]], content)

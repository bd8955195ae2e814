"""pywb, an archive's usual replay server, on a folder archive: by its own index and by ours.

Its dependencies are not those of Trotline: it is used from an environment of its own, and without one this is skipped.

    python -m venv pywb && pywb/bin/pip install pywb
    PYWB=pywb/bin python -m pytest tests/e2e/test_pywb_replay.py
"""

import asyncio
import json
import os
import random
import shutil
import socket
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.testing.archive_contract import capture, coded

SAME = b"<html><body>the same page " + b"again and " * 100 + b"</body></html>"
PACKED = b"<html><body>" + random.Random(1).randbytes(1000).hex().encode() + b"</body></html>"
"""Of a page that comes gzip-coded: not so small that it would be stored again."""
HTML = (("content-type", "text/html; charset=utf-8"), ("content-encoding", "gzip"))
OURS = ("url", "digest", "length", "offset", "filename")
START_WITHIN = 60.0


@pytest.fixture
def pywb() -> Path:
    folder = os.environ.get("PYWB", "")
    if not folder or not (Path(folder) / "wayback").exists():
        pytest.skip("PYWB does not name the programs of pywb")
    return Path(folder).absolute()


@pytest.fixture
async def pages(tmp_path):
    """Two pages, and one with the body of the second; two that came gzip-coded, with one body."""
    writer = ObjectArchive(FolderStore(tmp_path / "pages"), "w")
    await writer.write([capture(1, headers=HTML), *(capture(number, headers=HTML, body=SAME) for number in (2, 3))])
    await writer.write([coded(number, PACKED, headers=HTML) for number in (4, 5)])
    await writer.close()
    [file] = tmp_path.glob("pages/warc/*/*.warc.gz")
    return file


async def run(program, *words, cwd):
    process = await asyncio.create_subprocess_exec(program, *words, cwd=cwd, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode == 0, said.decode()


def lines(index):
    """Key and time, and what both indexes have."""
    found = [line.split(" ", 2) for line in index.read_text().splitlines()]
    return [(key, at, *(json.loads(fields)[name] for name in OURS)) for key, at, fields in found]


async def replayed(pywb, folder, *urls):
    """The pages as its server answers them, unchanged (`id_`)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = await asyncio.create_subprocess_exec(
        pywb / "wayback", "-p", str(port), "-b", "127.0.0.1", cwd=folder, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(START_WITHIN):
            while True:
                try:
                    return [
                        await asyncio.to_thread(_get, f"http://127.0.0.1:{port}/shop/2027id_/{url}") for url in urls
                    ]
                except URLError as error:
                    assert isinstance(error.reason, ConnectionRefusedError), error
                    await asyncio.sleep(0.2)
    finally:
        server.terminate()
        await server.wait()


def _get(url):
    with urlopen(url, timeout=30) as answer:  # noqa: S310 - our own server
        return answer.read()


@pytest.mark.slow("another program's server")
@pytest.mark.parametrize("index", ["its own", "ours"])
async def test_pywb_indexes_and_replays_pages_and_revisits(pywb, pages, tmp_path, index):
    await run(pywb / "wb-manager", "init", "shop", cwd=tmp_path)
    there = tmp_path / "collections" / "shop"
    if index == "ours":
        shutil.copy(pages, there / "archive")
        shutil.copy(pages.with_name(pages.name.replace(".warc.gz", ".cdxj")), there / "indexes")
    else:
        await run(pywb / "wb-manager", "add", "shop", str(pages), cwd=tmp_path)
        ours = pages.with_name(pages.name.replace(".warc.gz", ".cdxj"))
        assert lines(there / "indexes" / "index.cdxj") == lines(ours)
    urls = [capture(number).url for number in (1, 2, 3, 4, 5)]
    # Our client names no coding, so its server decodes.
    assert await replayed(pywb, tmp_path, *urls) == [capture(1).body, SAME, SAME, PACKED, PACKED]

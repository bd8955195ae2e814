"""A world of our own: a network namespace that owns every address, with commands that run inside it.

Made with `unshare`, so that it has no name and nothing is left of it when its process ends, however the test ends.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from tests.e2e.running import Ended, Running

from trotline.testing.servers import need

ROOT = Path(__file__).parents[2]


class Dialled(NamedTuple):
    """One connection that somebody made."""

    address: str
    port: int
    asked: tuple[str, ...]
    """Host and path of each request; on TLS ports the greeting as it came."""
    canary: bool
    """Not the open web: nobody should ever come here."""


class Seen(NamedTuple):
    dialled: list[Dialled]
    connects: int
    """Connections begun, also those that nobody took."""
    questions: list[tuple[str, str, bool]]
    """Name, kind, and whether over TCP."""
    proxied: list[tuple[str, str]]
    """Method and target of what the proxy was asked for."""

    @property
    def hits(self) -> list[Dialled]:
        return [one for one in self.dialled if one.canary]


class World:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._past = Seen([], 0, [], [])

    def look(self, *, again: bool = False) -> Seen:
        """What has happened since the last look; with `again`, the next look begins where this one does."""
        assert self._process.stdin is not None
        self._process.stdin.write("look\n")
        self._process.stdin.flush()
        told = self._hear()
        now = Seen(
            [Dialled(one["address"], one["port"], tuple(one["asked"]), one["canary"]) for one in told["dialled"]],
            told["connects"],
            [tuple(question) for question in told["questions"]],
            [tuple(one) for one in told["proxied"]],
        )
        before, self._past = self._past, self._past if again else now
        return Seen(
            now.dialled[len(before.dialled) :],
            now.connects - before.connects,
            now.questions[len(before.questions) :],
            now.proxied[len(before.proxied) :],
        )

    async def trotline(self, folder: Path, *words: str, env: Mapping[str, str] | None = None) -> Ended:
        """Run `trotline WORDS` in here."""
        return await (await self.start(folder, *words, env=env)).end()

    async def start(self, folder: Path, *words: str, env: Mapping[str, str] | None = None) -> Running:
        return await self._start(folder, ["trotline.cli", *words], env)

    async def fetch(self, folder: Path, urls: Sequence[str], **options: Any) -> dict[str, dict[str, Any]]:
        """What a fetcher makes of these URLs, asked for all at once, with no gate before it."""
        order = folder / "order.json"
        order.write_text(json.dumps({"urls": urls, **options}))
        ended = await (await self._start(folder, ["tests.e2e.world_fetches", str(order)], None)).end()
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    async def _start(self, folder: Path, module: Sequence[str], env: Mapping[str, str] | None) -> Running:
        return Running(
            await asyncio.create_subprocess_exec(
                "nsenter", f"--target={self._process.pid}", "--net", "--mount", f"--wd={folder}",
                sys.executable, "-m", *module,
                env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}, start_new_session=True,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )
        )  # fmt: skip

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the world has ended"
        return json.loads(line)


@contextmanager
def world() -> Iterator[World]:
    need("ip", "iproute2")
    if os.geteuid() != 0:
        pytest.skip("a network namespace of one's own needs root")
    if subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody make a network namespace")
    with TemporaryDirectory(prefix="trotline-world-") as folder:
        process = subprocess.Popen(
            ["unshare", "--net", "--mount", sys.executable, "-m", "tests.e2e.inside_world", folder],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        made = World(process)
        try:
            assert made._hear() == {"ready": True}
            yield made
        finally:
            process.kill()
            process.communicate()

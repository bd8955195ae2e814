"""The parent's side of a process that parses an archive: started with its first share, and again if it died."""

import asyncio
import sys

import msgspec

from trotline.processes.reparse_child import ReparseCounts, ReparseShare

_LONGEST_LINE = 16 * 1024 * 1024
"""Bytes: counts with every reason of a failure."""


class Parser:
    def __init__(self) -> None:
        self._child: asyncio.subprocess.Process | None = None

    async def parse(self, share: ReparseShare) -> ReparseCounts:
        """What it counted; `trouble`, if it could not go on."""
        child = await self._started()
        assert child.stdin is not None  # noqa: S101 - for the type checker
        assert child.stdout is not None  # noqa: S101
        try:
            child.stdin.write(msgspec.json.encode(share) + b"\n")
            await child.stdin.drain()
            while line := await child.stdout.readline():
                # A handler may print.
                try:
                    return msgspec.json.decode(line, type=ReparseCounts)
                except msgspec.DecodeError:
                    continue
        except (ConnectionError, ValueError):
            # It ended, or printed a line without end.
            pass
        await self.close()
        return ReparseCounts(trouble=f"a process that parsed pages ended with exit code {child.returncode}")

    async def _started(self) -> asyncio.subprocess.Process:
        if self._child is None:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "trotline.processes.reparse_child",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
            )
        return self._child

    async def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            if child.returncode is None:
                child.kill()
            await child.wait()

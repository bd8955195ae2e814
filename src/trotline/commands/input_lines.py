"""Files and standard input, read in pieces without blocking the event loop."""

import asyncio
import errno
import os
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from trotline.errors import SettingsError
from trotline.spider.seeds import parse_line

if TYPE_CHECKING:
    from trotline.model.task import Task
    from trotline.spider.route import Route

_PIECE = 1 << 16
LONGEST_LINE = 1 << 22
"""Bytes of a line: more than any task may have."""


def read_lines(source: str) -> AsyncIterator[tuple[int, bytes | None]]:
    """Numbered lines of a file, or of standard input as they come; None for one that is too long to be anything."""
    return lines_of(pieces(source), LONGEST_LINE)


async def lines_of(source: AsyncIterator[bytes], longest: int) -> AsyncIterator[tuple[int, bytes | None]]:
    """Numbered lines; None for one with more than `longest` bytes."""
    begun, number, too_long = b"", 0, False
    async for piece in source:
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            number += 1
            yield number, None if too_long or len(line) > longest else line
            too_long = False
        if too_long or len(begun) > longest:
            # Its beginning is forgotten, so that memory stays what it was.
            begun, too_long = b"", True
    if begun or too_long:
        yield number + 1, None if too_long else begun


def check_readable(source: str) -> None:
    """SettingsError if there is no such file, or it is not ours to read. It is not opened: a pipe can be only once."""
    if source == "-":
        return
    try:
        is_folder = stat.S_ISDIR(Path(source).stat().st_mode)
    except OSError as error:
        raise _unreadable(source, str(error.strerror)) from error
    if is_folder:
        raise SettingsError(f"{source} is a folder", hint="Give a file with one URL or JSON object per line.")
    if not os.access(source, os.R_OK):
        raise _unreadable(source, os.strerror(errno.EACCES))


def task_of(route: "Route", number: int, line: bytes | None, priority: int | None = None) -> "Task | None":
    """The task in a line of a list; None if it is blank or a remark. ValueError says why there is none."""
    text = text_of(number, line)
    if not text:
        return None
    task = parse_line(route, text, priority)
    if task.route not in route.spider.routes:
        raise ValueError(f"there is no route {task.route!r}; there are {', '.join(route.spider.routes)}")
    return task


def text_of(number: int, line: bytes | None) -> str:
    """What a line of a list says; empty if it is blank or a remark. ValueError says why it cannot be read."""
    if line is None:
        raise ValueError(f"is longer than {LONGEST_LINE:,} bytes")
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None
    return "" if text.startswith("#") else text


async def pieces(source: str) -> AsyncIterator[bytes]:
    """What `-` (standard input) or a file holds. Waiting for a person or a slow program keeps no signal from us."""
    descriptor = sys.stdin.fileno() if source == "-" else _opened(source)
    mode = os.fstat(descriptor).st_mode
    waits = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
    try:
        while True:
            if waits:
                await _readable(descriptor)
            piece = os.read(descriptor, _PIECE)
            if not piece:
                return
            yield piece
    finally:
        if source != "-":
            os.close(descriptor)


def _opened(source: str) -> int:
    check_readable(source)
    try:
        return os.open(source, os.O_RDONLY)
    except OSError as error:
        raise _unreadable(source, str(error.strerror)) from error


def _unreadable(source: str, why: str) -> SettingsError:
    return SettingsError(f"{source} cannot be read: {why}", hint='Give a file, or "-" for standard input.')


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)

"""Marks a page while it is parsed: after a crash of a native parser, or an endless pattern, the supervisor knows it.

Classes, as a generator-based context manager costs five times as much.
"""

import asyncio

from trotline.worker.parsing_marker import Marker


class Marked:
    """The page of a lease."""

    __slots__ = ("_marker", "_token")

    def __init__(self, marker: Marker, token: int) -> None:
        self._marker = marker
        self._token = token

    def __enter__(self) -> None:
        self._marker.reading(self._token, asyncio.get_running_loop().time())

    def __exit__(self, *_: object) -> None:
        self._marker.read()


class RobotsMarked(Marked):
    """The robots.txt of its host."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._marker.reading_robots(self._token, asyncio.get_running_loop().time())

    def __exit__(self, *_: object) -> None:
        self._marker.read_robots()

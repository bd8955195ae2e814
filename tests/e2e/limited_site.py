"""A site with limits of its own: so many requests a second, a Crawl-delay, and a log of who came when."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.e2e.raw_site import Site, ok, site


class Asked(NamedTuple):
    at: float
    path: str
    status: int


class Limits:
    """A token bucket: `rate` a second, `burst` at once, 429 with Retry-After for the rest."""

    def __init__(self, *, rate: float = 1e9, burst: float = 1e9, retry_after: int = 1, robots: bytes = b"") -> None:
        self.rate, self.burst, self.retry_after, self.robots = rate, burst, retry_after, robots
        self.asked: list[Asked] = []
        self._tokens, self._at = burst, time.monotonic()

    async def answer(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        now, path = time.monotonic(), request.split(b" ")[1].decode()
        if path == "/robots.txt":
            writer.write(ok(self.robots) if self.robots else ok(b"", status="404 Not Found"))
            return
        self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
        self._at = now
        admitted = self._tokens >= 1
        self._tokens -= admitted
        self.asked.append(Asked(now, path, 200 if admitted else 429))
        if admitted:
            writer.write(ok(f"<html><h1>{path}</h1></html>".encode(), "Content-Type: text/html"))
        else:
            writer.write(ok(b"", f"Retry-After: {self.retry_after}", status="429 Too Many Requests"))

    def of(self, status: int) -> list[float]:
        """When it gave such answers."""
        return [asked.at for asked in self.asked if asked.status == status]


@asynccontextmanager
async def limited(limits: Limits) -> AsyncIterator[Site]:
    async with site(limits.answer) as there:
        yield there

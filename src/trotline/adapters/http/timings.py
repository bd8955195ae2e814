"""Timing by phase. Optional, as tracing every page costs too much."""

import asyncio
from types import SimpleNamespace
from typing import Any

from aiohttp import ClientSession, TraceConfig

from trotline.model.answer import Timing
from trotline.model.time import Seconds


class Stopwatch:
    """The phases of one request, by the loop's clock."""

    def __init__(self) -> None:
        self.started = asyncio.get_running_loop().time()
        self.marks: dict[str, Seconds] = {}

    def mark(self, name: str) -> None:
        self.marks[name] = asyncio.get_running_loop().time()

    def timing(self) -> Timing:
        now = asyncio.get_running_loop().time()
        resolve = self._between("dns_start", "dns_end")
        connect = max(0.0, self._between("connect_start", "connect_end") - resolve)
        sent = self.marks.get("connect_end", self.started)
        head = self.marks.get("head", now)
        return Timing(
            resolve=resolve, connect=connect, first_byte=head - sent, body=now - head, total=now - self.started
        )

    def _between(self, start: str, end: str) -> Seconds:
        if start not in self.marks:
            return 0.0
        return self.marks.get(end, self.marks[start]) - self.marks[start]


def trace() -> TraceConfig:
    """Marks the stopwatch that a request was sent with (`trace_request_ctx`)."""
    config = TraceConfig()

    def at(name: str) -> Any:
        async def note(_session: ClientSession, context: SimpleNamespace, _params: object) -> None:
            if isinstance(context.trace_request_ctx, Stopwatch):
                context.trace_request_ctx.mark(name)

        return note

    config.on_dns_resolvehost_start.append(at("dns_start"))
    config.on_dns_resolvehost_end.append(at("dns_end"))
    config.on_connection_create_start.append(at("connect_start"))
    config.on_connection_create_end.append(at("connect_end"))
    config.on_request_end.append(at("head"))
    return config

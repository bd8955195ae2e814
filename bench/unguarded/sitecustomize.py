"""Python imports this file when it starts, if its folder is on PYTHONPATH: worker processes without their guards.

Only for `python -m bench --only guards`, which compares Trotline with itself. There is no such switch in Trotline: the
parts are replaced from outside, and a part that is no longer where it was is an error, not a free ride.
"""

import sys
from typing import Any


def _replace(owner: Any, name: str, part: Any) -> None:
    if not hasattr(owner, name):
        raise SystemExit(f"bench/unguarded: {owner} has no {name} any more")
    setattr(owner, name, part)


def _take_off() -> None:
    import asyncio
    from functools import partial

    import aiohttp
    from aiohttp.client_proto import ResponseHandler

    from trotline.adapters.http import fetcher, response_reader
    from trotline.adapters.http.limited_connection import Watchdog, WatchedConnection
    from trotline.config import components
    from trotline.rules import redaction, verdicts
    from trotline.rules.traps import TrapDetector, TrapRules
    from trotline.worker.parsing_marker import Marker

    async def body(response: Any, *_: Any) -> tuple[bytes, int, tuple[str, ...]]:
        found = await response.content.read()
        return found, len(found), ()

    class Unwatched(WatchedConnection):
        """A connection as aiohttp makes it; the short way is no guard, and stays."""

        connection_made = ResponseHandler.connection_made
        connection_lost = ResponseHandler.connection_lost
        data_received = ResponseHandler.data_received
        feed_data = ResponseHandler.feed_data
        set_exception = ResponseHandler.set_exception

    def connector(limits: Any, *_: Any, **__: Any) -> aiohttp.TCPConnector:
        made = aiohttp.TCPConnector(limit=0)
        made._factory = partial(Unwatched, asyncio.get_running_loop(), limits, Watchdog(limits))
        return made

    def judged(_: Any, text: str) -> tuple[str, str]:
        end = text.find("/", 8)
        return text[:end], text[end:]

    open_gate = components.open_gate

    def gate(spider: Any, *known: Any) -> Any:
        spider.traps = TrapRules(**dict.fromkeys(TrapRules.__struct_fields__, 0))
        return open_gate(spider, *known)

    # Guard and limits of the connection and of what comes over it.
    _replace(fetcher.HttpFetcher, "_judged", judged)
    _replace(fetcher.HttpFetcher, "check_type", lambda self, status, content_type, is_file=False: None)
    _replace(fetcher, "connector", connector)
    _replace(response_reader, "head", lambda response, limits: (tuple(response.headers.items()), ()))
    _replace(response_reader, "body", body)
    # Robots, traps, near duplicates, challenge pages.
    _replace(components, "open_robots", lambda *_, **__: None)
    _replace(components, "open_gate", gate)
    _replace(TrapDetector, "why", lambda self, address, now=0.0, **page: None)
    _replace(verdicts, "challenge", lambda answer: "")
    # What tells the supervisor which page is being read, and what keeps secrets out of texts.
    _replace(Marker, "reading", lambda self, token, now: None)
    _replace(Marker, "read", lambda self: None)
    _replace(redaction, "text", lambda said, keys=(), about=None: said)
    _replace(redaction, "url", lambda text, keys=(): text)


if "trotline.processes.child" in sys.orig_argv:
    _take_off()

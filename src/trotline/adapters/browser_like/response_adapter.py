"""An answer of the browser-like client in the form that `response_reader` reads."""

from typing import Any

import wreq
from aiohttp import hdrs
from multidict import CIMultiDict

from trotline.adapters.browser_like import errors
from trotline.adapters.browser_like.visit_timeouts import Watchdog
from trotline.model.limits import Limits

_VERSIONS = ((wreq.Version.HTTP_2, "2"), (wreq.Version.HTTP_11, "1.1"), (wreq.Version.HTTP_10, "1.0"))


class Reply:
    """Head and body of one answer."""

    def __init__(self, response: wreq.Response, method: str, limits: Limits, watchdog: Watchdog) -> None:
        self.method = method
        self.status = response.status.as_int()
        self.headers: CIMultiDict[str] = CIMultiDict(
            (bytes(name).decode("latin-1"), bytes(value).decode("utf-8", "surrogateescape"))
            for name, value in response.headers
        )
        self.http = next((name for version, name in _VERSIONS if version == response.version), "1.1")
        self.content = Body(response, self.headers.get(hdrs.CONTENT_LENGTH), limits, watchdog)

    def close(self) -> None:
        self.content.close()


class Body:
    """The bytes of the body as they arrive, not decompressed."""

    def __init__(self, response: wreq.Response, announced: str | None, limits: Limits, watchdog: Watchdog) -> None:
        self._streamer: Any = response.stream()
        self._announced = announced
        self._limits = limits
        self._watchdog = watchdog

    async def readany(self) -> bytes:
        """At least one byte; none: the end."""
        watchdog = self._watchdog
        if self._streamer is None:
            return b""
        watchdog.read(True)
        try:
            while True:
                piece = await anext(self._streamer)
                # Trailers come as a map of headers, and are not used.
                if isinstance(piece, memoryview) and len(piece):
                    break
        except StopAsyncIteration:
            self._streamer = None
            return b""
        except errors.CLIENT_ERRORS as error:
            raise errors.of_body(error, self._limits, watchdog.received, self._announced) from error
        finally:
            watchdog.read(False)
        watchdog.received += len(piece)
        return bytes(piece)

    def at_eof(self) -> bool:
        return self._streamer is None

    def close(self) -> None:
        streamer, self._streamer = self._streamer, None
        if streamer is not None:
            streamer.__exit__(None, None, None)

"""`/metrics`: the server's own process, its answers and its streams. Figures of jobs are the coordinator's."""

from collections import Counter
from collections.abc import Callable

from aiohttp import web

from trotline.commands.web_metrics import web_metrics
from trotline.model.metrics import WebFigures
from trotline.web.route_table import Call, Role, Route


class Metrics:
    def __init__(self, streams: Callable[[], int]) -> None:
        self._streams = streams
        self._requests: Counter[tuple[str, int]] = Counter()
        self._text: tuple[Callable[[], bytes], str] | None = None

    def count(self, method: str, status: int) -> None:
        self._requests[method, status] += 1

    def scrape(self) -> web.Response:
        if self._text is None:
            self._text = web_metrics(lambda: WebFigures(requests=dict(self._requests), streams=self._streams()))
        text, media = self._text
        return web.Response(body=text(), headers={"Content-Type": media})


async def scrape(call: Call) -> web.Response:
    return call.site.metrics.scrape()


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        role=Role.VIEW,
        summary="Prometheus metrics of the server itself.",
        handler=scrape,
        media="text/plain",
    ),
)

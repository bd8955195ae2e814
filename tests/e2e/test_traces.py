"""Spans of visits, received over HTTP by a collector and decoded as OpenTelemetry defines them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call
from tests.e2e.small_site import serving

PAGES = 20
CANARY = "canary-0123456789"


class Collector:
    """Takes spans; `answers` is what it does with them."""

    def __init__(self, answers: int = 200) -> None:
        self._answers = answers
        self.spans: list[Span] = []
        self.resources: list[dict[str, Any]] = []
        self.raw = b""
        self.paths: set[str] = set()

    async def __aenter__(self) -> Self:
        self._serving = serving(self._take)
        self.url = await self._serving.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._serving.__aexit__(None, None, None)

    async def _take(self, request: web.Request) -> web.Response:
        self.paths.add(request.path)
        if self._answers == 0:
            await asyncio.sleep(60)
        body = await request.read()
        if self._answers == 200:
            self.raw += body
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(facts(group.resource))
                self.spans += [span for scope in group.scope_spans for span in scope.spans]
        answer = ExportTraceServiceResponse().SerializeToString()
        return web.Response(status=self._answers, body=answer, content_type="application/x-protobuf")


def facts(thing: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in thing.attributes}


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=PAGES, held=()) as opened:
        yield opened


async def test_every_visit_is_a_span_with_fetch_parse_and_commit(site: HeldSite, tmp_path: Path):
    seeds = [f"{site.url}/?token={CANARY}", f"{site.url}/missing"]
    (tmp_path / "site.py").write_text(site.spider(seeds=repr(seeds)))
    async with Collector() as collector:
        ended = await call(
            tmp_path, "run", "site.py", "--allow-private", "--quiet", "--otel", collector.url, "--otel-sample", "1"
        )
    assert ended.code == 0, ended
    assert collector.paths == {"/v1/traces"}
    visits = {span.span_id: span for span in collector.spans if span.name == "visit"}
    assert len(visits) == PAGES + 2
    parts: dict[bytes, dict[str, Span]] = {each: {} for each in visits}
    for span in collector.spans:
        if span.name != "visit":
            parts[span.parent_span_id][span.name] = span
    for identity, span in visits.items():
        mine, about = parts[identity], facts(span)
        read = about["trotline.verdict"] == "ok"
        assert set(mine) == ({"fetch", "parse", "commit"} if read else {"fetch", "commit"})
        assert len({span.trace_id, *(part.trace_id for part in mine.values())}) == 1
        times = [(part.start_time_unix_nano, part.end_time_unix_nano) for part in mine.values()]
        assert all(span.start_time_unix_nano <= begin <= end <= span.end_time_unix_nano for begin, end in times)
        assert about["url.full"].startswith(site.url) and about["trotline.job"] == "site-1"
        assert facts(mine["fetch"])["http.response.status_code"] == (200 if read else 404)
        assert span.end_time_unix_nano - span.start_time_unix_nano < 60e9
    assert {facts(span)["trotline.verdict"] for span in visits.values()} == {"ok", "gone"}
    assert CANARY.encode() not in collector.raw
    assert all(one["service.name"] == "trotline" and one["service.instance.id"] for one in collector.resources)


async def test_a_visit_that_fails_is_an_error(site: HeldSite, tmp_path: Path):
    text = site.spider().replace("    yield {", '    assert "page/3" not in page.url\n    yield {')
    (tmp_path / "site.py").write_text(text)
    async with Collector() as collector:
        await call(
            tmp_path, "run", "site.py", "--allow-private", "--quiet", "--otel", collector.url, "--otel-sample", "1"
        )
    failed = [span for span in collector.spans if span.status.code == Status.STATUS_CODE_ERROR]
    assert [facts(span)["trotline.outcome"] for span in failed] == ["bury"]
    assert "AssertionError" in failed[0].status.message


async def test_a_share_of_the_visits_is_traced(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    async with Collector() as collector:
        env = {"TROTLINE_OTEL": collector.url, "TROTLINE_OTEL_SAMPLE": "0.5"}
        ended = await call(tmp_path, "run", "site.py", "--allow-private", "--quiet", env=env)
    assert ended.code == 0
    # Of 21: the chance of none or all is one in a million.
    assert 0 < len([span for span in collector.spans if span.name == "visit"]) < PAGES + 1


@pytest.mark.parametrize("answers", [500, 0], ids=["fails", "does not answer"])
async def test_a_collector_in_trouble_does_not_harm_the_crawl(site: HeldSite, tmp_path: Path, answers: int):
    (tmp_path / "site.py").write_text(site.spider())
    async with Collector(answers) as collector:
        began = asyncio.get_running_loop().time()
        ended = await call(
            tmp_path, "run", "site.py", "--allow-private", "--quiet", "--otel", collector.url, "--otel-sample", "1"
        )
        took = asyncio.get_running_loop().time() - began
    assert ended.code == 0, ended
    assert took < 30, "what is left at the end is given up"


async def test_a_sample_without_a_collector_is_refused(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    ended = await call(tmp_path, "run", "site.py", "--otel-sample", "0.5")
    assert ended.code == 2 and "--otel http://HOST:4318" in ended.err

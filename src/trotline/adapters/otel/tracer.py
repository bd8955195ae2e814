"""Sends spans to an OpenTelemetry collector, in a thread of the SDK, from a queue that has an end."""

import asyncio
import contextlib
import random
import threading

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Status, StatusCode

from trotline.model.span import Span
from trotline.model.time import Moment, Seconds

QUEUE = 2048
"""Spans that wait to be sent; more are dropped."""
EVERY: Seconds = 2.0
TIMEOUT: Seconds = 5.0
"""Of one request to the collector."""
CLOSE_WITHIN: Seconds = 3.0
"""For what is left at the end. A full queue is several requests, and with a dead collector each of them takes its
timeout: a worker that took so long to stop would be killed, and look like a lost one."""
LONGEST_VALUE = 2_000
"""Characters of an attribute."""


class OtelTracer:
    """`sample`: the share of visits that are traced."""

    def __init__(self, url: str, sample: float, resource: dict[str, str], chance: random.Random) -> None:
        self._sample = sample
        self._chance = chance
        self._provider = TracerProvider(
            # Visits are chosen before their spans are made.
            sampler=ALWAYS_ON,
            resource=Resource.create({"service.name": "trotline", **resource}),
            span_limits=SpanLimits(max_attribute_length=LONGEST_VALUE),
            shutdown_on_exit=False,
        )
        self._exporter = OTLPSpanExporter(endpoint=url, timeout=TIMEOUT)
        self._provider.add_span_processor(
            BatchSpanProcessor(
                self._exporter,
                max_queue_size=QUEUE,
                max_export_batch_size=QUEUE // 4,
                schedule_delay_millis=EVERY * 1000,
            )
        )
        self._tracer = self._provider.get_tracer("trotline")

    def wants(self) -> bool:
        return self._chance.random() < self._sample

    def record(self, span: Span) -> None:
        self._record(span, None)

    async def close(self) -> None:
        """Spans that are not sent within `CLOSE_WITHIN` are lost."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            # The loop may have ended before.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended.set)

        # A thread that no end of a process waits for, unlike those of the loop.
        threading.Thread(target=shut_down, name="trotline-otel-end", daemon=True).start()
        try:
            await asyncio.wait_for(ended.wait(), CLOSE_WITHIN)
        except TimeoutError:
            # Or its thread would try on, with a collector that is dead.
            self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _record(self, span: Span, parent: trace.Span | None) -> None:
        context = None if parent is None else trace.set_span_in_context(parent)
        kind = trace.SpanKind.CLIENT if span.name == "fetch" else trace.SpanKind.INTERNAL
        made = self._tracer.start_span(
            span.name, context=context, kind=kind, attributes=span.facts, start_time=_nanoseconds(span.began)
        )
        if span.error:
            made.set_status(Status(StatusCode.ERROR, span.error[:LONGEST_VALUE]))
        for part in span.parts:
            self._record(part, made)
        made.end(_nanoseconds(span.ended))


def _nanoseconds(moment: Moment) -> int:
    return int(moment * 1e9)

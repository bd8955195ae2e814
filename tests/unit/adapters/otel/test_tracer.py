"""A collector that does not answer must not delay the end of a worker until it looks like a lost one."""

import random
import socket
import threading
import time

from trotline.adapters.otel.tracer import CLOSE_WITHIN, QUEUE, TIMEOUT, OtelTracer
from trotline.model.span import Span


async def test_a_silent_collector_and_a_full_queue_delay_the_end_by_seconds_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces"
        tracer = OtelTracer(url, 1.0, {}, random.Random(1))
        for number in range(QUEUE - 1):
            tracer.record(Span(name="visit", began=float(number), ended=number + 1.0))
        began = time.monotonic()
        await tracer.close()
        assert time.monotonic() - began < CLOSE_WITHIN + 2.0

        # At most the request that is under way: a thread that tries again uses random numbers beside other tests.
        for thread in threading.enumerate():
            if thread.name == "trotline-otel-end":
                thread.join(TIMEOUT + 2.0)
                assert not thread.is_alive()

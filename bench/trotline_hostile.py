"""A spider for the hostile scenarios. Its handler takes the poison that a page names."""

import ctypes
import os
import re
from datetime import timedelta

from trotline import Limits, Page, Spider

seeds = [f"http://{host}:{os.environ['BENCH_PORT']}/" for host in os.environ["BENCH_HOSTS"].split(",")]
limits = Limits(parse=float(os.environ["BENCH_PARSE"]), total=float(os.environ["BENCH_TOTAL"]))
patience = timedelta(seconds=2 * limits.total)
hostile = Spider("hostile", pace=os.environ["BENCH_PACE"], robots=False, retries=1, limits=limits, give_up=patience)


@hostile.page(key="url", seeds=seeds)
def page(page: Page):
    take(page.css("meta[name=poison]::attr(content)").get() or "")
    yield {"url": page.url, "title": page.css("h1::text").get()}
    yield page.follow("a")


def take(poison: str) -> None:
    match poison:
        case "segfault":
            ctypes.string_at(0)
        case "memory":
            hoard = []
            while True:
                hoard.append(bytearray(1 << 24))
        case "loop":
            while True:
                pass
        case "regex":
            re.match(r"(a|aa)+$", "a" * 64 + "b")

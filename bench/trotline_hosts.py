"""A thousand hosts, each at its own pace: what one worker makes of what the limits admit."""

import os

from trotline import Page, Spider

port = os.environ["BENCH_PORT"]
seeds = [f"http://{host}:{port}/0.html" for host in os.environ["BENCH_HOSTS"].split(",")]
hosts = Spider("hosts", pace="1/s", robots=False)


@hosts.page(key="url", seeds=seeds)
def page(page: Page):
    yield {"url": page.url, "title": page.css("h1::text").get()}
    yield page.follow("a")

"""The spider of `trotline fetch`: a record of each page, whatever it is. It follows no links."""

from trotline import Page, Spider
from trotline.spider.page_facts import FIELDS, facts

PASSED_ON = (200, 400, 401, 402, 404, 405, 406, 410, 451)
"""Statuses that get a record. Blocks (403, 429) and errors of a server are retried, and then dead."""

fetch = Spider("fetch", hosts=["*"], pace="1/s")


@fetch.page(key="url", status=PASSED_ON)
def page(page: Page):  # type: ignore[no-untyped-def]
    yield facts(page, page.meta.get("fields") or FIELDS, asked=page.meta.get("asked"))


# Each URL was asked for: one without a record is named.
page.buries_dropped = True

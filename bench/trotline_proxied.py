"""Pages of a site that bans by address, through a proxy pool."""

import os

from trotline import Page, Spider

site, pages = os.environ["BENCH_SITE"], int(os.environ["BENCH_PAGES"])
pool = os.environ.get("BENCH_POOL", "")
proxied = Spider("proxied", pool=pool, pace=os.environ["BENCH_PACE"], robots=False, retries=3)


@proxied.page(key="url", seeds=[f"{site}/p/{number}" for number in range(pages)])
def product(page: Page):
    yield {"url": page.url, "title": page.css("h1::text").get(), "price": page.css(".price::text").get()}

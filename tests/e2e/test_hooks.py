"""Hooks in `run` and `try`: what the site gets, what is stored, and what the summary says."""

from pathlib import Path

from tests.e2e.running import call

from trotline.testing import DemoShop

SPIDER = """
from trotline import Drop, Page, Request, Spider

shop = Spider("shop", pace="200/s", headers={{"x-set": "spider"}})
calls = open("calls.txt", "a")

@shop.on_start
def begin(worker):
    print("start", worker.job, file=calls, flush=True)

@shop.on_finish
def end(worker):
    print("finish", worker.ended, file=calls, flush=True)

@shop.before_request
def sign(request: Request):
    request.headers["x-sign"] = request.route

@shop.after_answer
def not_the_first(page: Page):
    if page.url.endswith("/T1"):
        return Drop("not this one")

@shop.record
def dear(record, page):
    if float(record["price"][1:]) < {least}:
        return Drop("too cheap")
    record["price"] = float(record["price"][1:]) * {factor}

@shop.page(seeds=[f"{url}/p/T{{n}}" for n in range(1, 9)], key="sku")
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get(), "price": page.css(".price::text").get()}}
"""


async def test_a_run_goes_through_all_hooks_and_its_summary_names_what_they_dropped(tmp_path: Path) -> None:
    async with DemoShop(products=8) as shop:
        prices = {product.sku: float(product.price[1:]) for product in shop.truth}
        least = sorted(prices.values())[3]
        (tmp_path / "shop.py").write_text(SPIDER.format(url=shop.url, least=least, factor=1))
        limited = await call(tmp_path, "run", "shop.py", "--allow-private", "--out", "rows.jsonl", "--max-pages", "1")
        ended = await call(tmp_path, "run", "shop.py", "--allow-private", "--out", "rows.jsonl")
        tried = await call(tmp_path, "try", "shop.py", f"{shop.url}/p/T1", "--allow-private")
        (tmp_path / "shop.py").write_text(SPIDER.format(url=shop.url, least=0, factor="None"))
        broken = await call(tmp_path, "run", "shop.py", "--allow-private", "--out", "rows.jsonl", "--fresh")

    left = {sku for sku, price in prices.items() if price >= least and sku != "T1"}
    assert limited.code == 0, limited
    assert ended.code == 0, ended
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == len(left)
    assert f"{7 - len(left)} dropped record: too cheap (dear)" in " ".join(ended.out.split())
    assert "not this one (not_the_first)" in ended.out
    begun = "start shop-1"
    assert (tmp_path / "calls.txt").read_text().splitlines()[:4] == [begun, "finish stopped", begun, "finish finished"]
    assert "dropped: not this one (not_the_first)" in tried.out
    assert broken.code == 3, broken
    assert "record hook dear: TypeError at shop.py" in broken.out + broken.err

"""`trotline shell`: a page in an interactive session."""

import asyncio
from pathlib import Path

from tests.e2e.running import call, start

from trotline.testing import DemoShop

SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="200/s", headers={{"x-a": "1"}}, limits=__import__("trotline").Limits(parse=1.0))

@shop.page(seeds=["{url}/catalog"])
def catalog(page: Page):
    yield page.follow(".card a", to=product)

@shop.page(key="sku")
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get()}}
"""


async def test_a_page_is_asked_followed_and_tried(tmp_path: Path) -> None:
    async with DemoShop(products=8) as shop:
        (tmp_path / "shop.py").write_text(SPIDER.format(url=shop.url))
        words = ("shell", f"{shop.url}/catalog", "--spider", "shop.py", "--allow-private")
        running = await start(tmp_path, *words, stdin=asyncio.subprocess.PIPE)
        said, err = await asyncio.wait_for(
            running.process.communicate(
                b"css('h1::text').get()\nfollow('.card a')\nxpath('count(//h1)').get()\nfollow('/catalog')\n"
                b"fetch('http://127.0.0.1:1/')\n1/0\npage.follow_all\nfollow('.card a')\ntry_('product')\n"
            ),
            60,
        )
        one = await call(tmp_path, *words, "-c", "page.status, len(page.links())")
        private = await call(tmp_path, "shell", f"{shop.url}/catalog", "-c", "page")

    text = said.decode()
    assert "'The whole catalog'" in text
    assert f"200  {shop.url}/p/T1" in text
    assert "'1'" in text
    assert "not fetched: http://127.0.0.1:1/: refused: port 1 is not a web port" in err.decode()
    assert "ZeroDivisionError" in err.decode()
    assert "Scrapy's name; here: page.follow" in err.decode()
    assert "1 record" in text
    assert "key T1" in text
    assert (one.code, one.out.startswith("(200, ")) == (0, True)
    assert (private.code, "is not a public address" in private.err) == (2, True)


async def test_a_saved_page_needs_no_network(tmp_path: Path) -> None:
    (tmp_path / "tea.html").write_text("<h1>Tea</h1><a href=/p/2>x</a>")
    (tmp_path / "shop.py").write_text(SPIDER.format(url="https://shop.example"))
    place = ("shell", "tea.html", "--url", "https://shop.example/a/")
    one = await call(tmp_path, *place, "-c", "print(page.links(), css('h1::text').get())")
    tried = await call(tmp_path, *place, "--spider", "shop.py", "-c", "try_('product')")
    unfinished = await call(tmp_path, *place, "-c", "page.nothing(")

    assert (one.code, one.out) == (0, "['https://shop.example/p/2'] Tea\n")
    assert "has no key" in tried.out or "1 record refused" in tried.out, tried
    assert (unfinished.code, "is not complete" in unfinished.err) == (2, True)
    assert (await call(tmp_path, "shell", "none.html", "-c", "1")).code == 2


async def test_a_page_that_hangs_a_handler_ends_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "tea.html").write_text("<h1>Tea</h1>")
    text = SPIDER.format(url="https://shop.example").replace("    yield {", "    while True: pass\n    yield {")
    (tmp_path / "shop.py").write_text(text)
    ended = await call(tmp_path, "shell", "tea.html", "--spider", "shop.py", "-c", "try_('product')")

    assert ended.code == 3, ended
    assert "killed: reading its page took longer than 1 s" in ended.err

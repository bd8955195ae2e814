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


async def test_a_selector_that_finds_nothing_is_said_and_keeps_the_page(tmp_path: Path) -> None:
    (tmp_path / "tea.html").write_text("<h1>Tea</h1><a href=E0099.html>x</a>")
    place = ("shell", "tea.html", "--url", "http://127.0.0.1:1/a/b.html", "--allow-private")
    nothing = await call(tmp_path, *place, "-c", "follow('.nope')\nprint(page.title, page.url)")
    assert nothing.out.endswith("http://127.0.0.1:1/a/b.html\n"), nothing
    assert "no link of the page fits '.nope'" in nothing.err
    for words in ("follow('E0099.html')", "fetch('E0099.html')"):
        assert "not fetched: http://127.0.0.1:1/a/E0099.html: " in (await call(tmp_path, *place, "-c", words)).err


async def test_errors_show_the_users_lines_and_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "tea.html").write_text("<h1>Tea</h1>")
    running = await start(tmp_path, "shell", "tea.html", "-c", "def f():\n    return css('h1[')\nf()")
    _, err = await asyncio.wait_for(running.process.communicate(), 60)
    assert running.process.returncode == 3
    lines = err.decode().splitlines()
    assert [line.strip() for line in lines[1:3]] == ['File "<-c>", line 3, in <module>', 'File "<-c>", line 2, in f']
    assert len(lines) == 4 and "'h1[' is not a CSS selector" in lines[3], lines
    running = await start(tmp_path, "shell", "http://127.0.0.1:1/", stdin=asyncio.subprocess.PIPE)
    _, err = await asyncio.wait_for(running.process.communicate(b"css('h1')\ntry_('nope')\n"), 60)
    assert "Traceback" not in err.decode(), err.decode()
    assert "there is no page yet" in err.decode()


async def test_a_page_that_hangs_a_handler_ends_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "tea.html").write_text("<h1>Tea</h1>")
    text = SPIDER.format(url="https://shop.example").replace("    yield {", "    while True: pass\n    yield {")
    (tmp_path / "shop.py").write_text(text)
    ended = await call(tmp_path, "shell", "tea.html", "--spider", "shop.py", "-c", "try_('product')")

    assert ended.code == 3, ended
    assert "killed: reading its page took longer than 1 s" in ended.err

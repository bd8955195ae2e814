"""The independent closure is itself right: crawls are compared with it."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.e2e.closure import closure, links

from trotline.testing.servers import need, nginx
from trotline.testing.shop import DemoShop

HERE = "http://site.test/shelf/page.html"


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ('<a href="next.html">', ["http://site.test/shelf/next.html"]),
        ('<a href="/top?b=2&amp;a=1#part">', ["http://site.test/top?b=2&a=1"]),
        ('<a href="../up/./x/../y">', ["http://site.test/up/y"]),
        ('<A HREF=bare>', ["http://site.test/shelf/bare"]),
        ('<a href=" \n/spaced\t ">', ["http://site.test/spaced"]),
        ('<a href="//Other.TEST:80">', ["http://other.test/"]),
        ('<a href="#part"><a href="">', [HERE]),
        ('<a href="first" href="second">', ["http://site.test/shelf/first"]),
        ('<a href="x"><base href="/base/"><base href="/no/"><a href="y">', ["http://site.test/base/x", "http://site.test/base/y"]),
        ('<a href="/tea/чай">', ["http://site.test/tea/%D1%87%D0%B0%D0%B9"]),
        ('<a href="mailto:a@b"><a href="javascript:x()"><a href="http://[broken"><a name="x"><a href>', []),
        ('<!-- <a href="/no"> --><script>"<a href=\'/no\'>"</script>', []),
        ('<link href="/no"><area href="/no"><img src="/no">', []),
    ],
)  # fmt: skip
def test_only_the_links_of_a_elements_count_and_they_resolve_as_in_a_browser(markup: str, found: list[str]) -> None:
    assert links(markup, HERE) == found


def test_the_closure_of_the_shop_leaves_out_what_robots_forbids() -> None:
    with DemoShop.in_thread(products=5) as shop:
        assert closure(shop.url) == shop.pages()
        assert closure(shop.url, robots=False) - shop.pages() == {f"{shop.url}/private/stock"}


def test_the_closure_follows_redirects_on_the_host_and_not_off_it(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "index.html").write_text('<a href="old">o</a><a href="http://localhost:9/">away</a>')
    (tmp_path / "old" / "index.html").write_text("<p>a folder: nginx sends its visitors to the slash")

    with nginx(tmp_path) as site:
        assert closure(site.url) == {f"{site.url}/", f"{site.url}/old/"}
    with DemoShop.in_thread(products=2) as shop:
        assert closure(f"{shop.url}/redirect/chain/3") == shop.pages()
        assert closure(f"{shop.url}/redirect/loop") == frozenset()
        assert closure(f"{shop.url}/redirect/elsewhere") == frozenset()


def test_a_real_nginx_gives_html_pages_only_and_directories_by_their_index(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub">s</a><a href="a.html#x">a</a><a href="data.json">d</a><a href="no">n</a>'
    )
    (tmp_path / "sub" / "index.html").write_text('<a href="../">up</a>')
    (tmp_path / "a.html").write_text("<p>leaf")
    (tmp_path / "data.json").write_text("{}")

    with nginx(tmp_path) as site:
        assert closure(site.url) == {f"{site.url}/", f"{site.url}/sub/", f"{site.url}/a.html"}


def test_wget_finds_the_same_pages(tmp_path: Path) -> None:
    with DemoShop.in_thread(products=30) as shop:
        command = [
            str(need("wget", "wget")),
            "--recursive",
            "--level=inf",
            "--delete-after",
            "--no-verbose",
            f"{shop.url}/",
        ]
        log = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr

        found = set(re.findall(r" URL:(\S+) \[", log)) - {f"{shop.url}/robots.txt"}
        assert found == closure(shop.url)

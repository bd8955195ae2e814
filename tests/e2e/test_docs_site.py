"""A real documentation site: what is stored is exactly what an independent closure of the site gives."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.e2e.running import call, progress_of, rows_of

from trotline.testing.servers import Nginx

SPIDER = """
from trotline import Page, Spider

docs = Spider("docs", pace="1000/s")


@docs.page(key="url", seeds=["{url}/"])
def page(page: Page):
    if page.headers.get("content-type", "").startswith("text/html"):
        yield {{"url": page.url, "title": page.title}}
        yield page.follow()
"""


async def test_a_documentation_site_is_stored_whole_and_nothing_else(
    docs_site: Nginx, closure: Callable[[str], frozenset[str]], tmp_path: Path
) -> None:
    expected = closure(f"{docs_site.url}/")
    before = len(docs_site.requests())
    (tmp_path / "docs.py").write_text(SPIDER.format(url=docs_site.url))

    ended = await call(tmp_path, "run", "docs.py", "--allow-private", "--json")

    rows = rows_of(tmp_path / "docs.db")
    stored = {row["url"] for row in rows}
    assert stored == expected, f"missing {sorted(expected - stored)[:9]}, too many {sorted(stored - expected)[:9]}"
    assert len(rows) == len(stored) == 527
    assert all(row["title"] for row in rows)
    assert ended.code == 0, ended.summary
    books = await progress_of(tmp_path, "docs")
    assert (books.waiting, books.leased) == (0, 0)
    asked = Counter(line.split()[1] for line in docs_site.requests()[before:])
    assert asked.pop("/robots.txt") == 1
    assert set(asked.values()) == {1}, "no page was fetched twice"

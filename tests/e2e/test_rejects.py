"""Records that fail validation: said in the summary, and visited again when the handler is mended."""

from pathlib import Path

from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, rows_of

SPIDER = """
from dataclasses import dataclass

from trotline import Page, Spider

site = Spider("site", pace="500/s")


@dataclass
class Thing:
    name: str
    size: int


@site.page(key="name", seeds=["{url}/"])
def page(page: Page):
    name = page.css("h1::text").get()
    if name == "page/3":
        float(name)
    yield Thing(name, {size})
    yield page.follow("a")
"""


async def test_rejected_records_are_in_the_summary_and_their_pages_are_visited_again(tmp_path: Path) -> None:
    async with HeldSite(pages=6, held=()) as site:
        spider = tmp_path / "site.py"
        spider.write_text(SPIDER.format(url=site.url, size='len(name) if name == "home" else "n/a"'))
        first = await call(tmp_path, "run", "site.py", "--allow-private")

        assert first.code == 3
        assert "site: finished, but 1 task is dead and 5 records were rejected" in first.out
        assert "5  size: expected int, got str" in first.out
        assert '{"name":"page/' in first.out
        assert "trotline dead site --why 'bad record'" in first.out
        assert "1  handler: ValueError at site.py:19 in page" in first.out
        assert "ValueError: could not convert string to float: 'page/3'" in first.out

        listed = await call(tmp_path, "dead", "site", "--why", "bad record")
        assert "site-1: 5 rejected records" in listed.out
        assert "5  bad record: size: expected int, got str" in listed.out

        spider.write_text(SPIDER.format(url=site.url, size="len(name)").replace("float(name)", "pass"))
        revived = await call(tmp_path, "dead", "site", "--why", "bad record", "--revive")
        assert "5 pages of site-1 will be visited again" in revived.out
        assert "trotline run site.py --allow-private" in revived.out
        await call(tmp_path, "dead", "site", "--revive")
        second = await call(tmp_path, "run", "site.py", "--allow-private", "--json")

    assert second.code == 0, second.out
    assert (second.summary["job"], second.summary["records"], second.summary["rejected"]) == ("site-1", 7, 0)
    assert len(rows_of(tmp_path / "site.db")) == 7


async def test_the_traceback_of_a_handler_is_in_its_grave_and_in_try(tmp_path: Path) -> None:
    async with HeldSite(pages=3, held=()) as site:
        (tmp_path / "site.py").write_text(SPIDER.format(url=site.url, size="1"))
        await call(tmp_path, "run", "site.py", "--allow-private", "--quiet")
        [grave] = (await call(tmp_path, "dead", "site", "--json")).events
        tried = await call(tmp_path, "try", "site.py", "page", f"{site.url}/page/3", "--allow-private")

    assert grave["why"] == "handler: ValueError at site.py:19 in page"
    assert "float(name)" in grave["detail"]
    assert "site.py:19 in page" in tried.out
    assert "    float(name)" in tried.out

"""`raise Retry(...)` in a handler, in a real run: another attempt, or the graveyard with the reason."""

from pathlib import Path

from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, rows_of

ASKS = """    if page.url.endswith("/page/1") and not page.attempt:
        raise Retry("not complete yet")
    if page.url.endswith("/page/2"):
        raise Retry("never complete")
"""


async def test_a_page_is_fetched_again_until_it_is_complete_or_its_attempts_are_spent(tmp_path: Path) -> None:
    async with HeldSite(pages=3, held=()) as site:
        text = site.spider(more="retries=1").replace("import Limits", "import Retry, Limits")
        (tmp_path / "site.py").write_text(text.replace("def page(page: Page):\n", f"def page(page: Page):\n{ASKS}"))
        ended = await call(tmp_path, "run", "site.py", "--allow-private", "--json")
        dead = await call(tmp_path, "dead", "site", "--why", "retry asked")

    assert (ended.code, ended.summary["dead"]) == (3, 1), ended.summary
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == ["home", "page/1", "page/3"]
    assert (site.visits["page/1"], site.visits["page/2"], site.visits["page/3"]) == (2, 2, 1)
    assert "retry asked: never complete" in dead.out

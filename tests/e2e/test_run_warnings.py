"""What a run warns of, and what it refuses."""

import signal
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, start

SPIDER = """
from trotline import Page, Spider

site = Spider("site", pace="200/s", hosts=["127.0.0.1"]{more})


@site.page(key="name", seeds={seeds})
def page(page: Page):
    yield {{"name": page.css("h1::text").get(), "price": page.css(".price::text").get()}}
    yield page.follow("li.next a")
    yield page.follow("a")
"""


async def test_empty_fields_idle_selectors_and_seeds_out_of_scope_are_in_the_summary(tmp_path: Path) -> None:
    async with HeldSite(pages=25, held=()) as site:
        seeds = [f"{site.url}/", "https://elsewhere.example/"]
        (tmp_path / "site.py").write_text(SPIDER.format(seeds=seeds, more=""))
        ended = await call(tmp_path, "run", "site.py", "--allow-private")

    assert ended.code == 0, ended
    assert "page: field 'price' is empty in all records" in ended.out
    assert "page: page.follow('li.next a') matched nothing on any page" in ended.out
    assert "out of scope: not one of the spider's hosts, such as https://elsewhere.example/" in ended.out


async def test_bad_lines_of_seeds_are_told_with_their_number_and_cost_no_other(tmp_path: Path) -> None:
    async with HeldSite(pages=3, held=()) as site:
        (tmp_path / "site.py").write_text(SPIDER.format(seeds=[], more=""))
        pooled = f'{{"url": "{site.url}/page/2", "proxy_pool": "residential"}}'
        lines = [f"{site.url}/page/1", "# a remark", "", "nonsense", pooled, '{"url": 5}']
        (tmp_path / "seeds.txt").write_text("\n".join(lines))
        ended = await call(tmp_path, "run", "site.py", "--allow-private", "--seeds", "seeds.txt", "--json")

    assert ended.code == 3, ended
    assert ended.summary["records"] == 1
    [warning] = [text for text in ended.summary["warnings"] if "of the seeds" in text]
    assert "2 lines" in warning
    assert "line 4: " in warning
    assert "line 6: " in warning
    [refused] = [text for text in ended.summary["warnings"] if "pool" in text]
    assert "there is no proxy pool 'residential'. No proxies are set" in refused


async def test_changed_code_and_another_run_are_told_when_a_job_goes_on(tmp_path: Path) -> None:
    async with HeldSite(pages=3) as site:
        spider = tmp_path / "site.py"
        spider.write_text(SPIDER.format(seeds=[f"{site.url}/"], more=""))
        first = await start(tmp_path, "run", "site.py", "--allow-private", "--quiet")
        await site.arrived()
        spider.write_text(spider.read_text() + "\n# mended\n")
        second = await start(tmp_path, "run", "site.py", "--allow-private", "--json")
        event = await second.event()
        site.release()
        await second.end()
        await first.end()

    told = "\n".join(event["warnings"])
    assert "site.py has changed since site-1 began" in told
    assert "another run works on site-1 (process" in told


@pytest.mark.parametrize("whole", [True, False])
async def test_a_run_that_was_killed_on_this_machine_is_not_called_another_run(tmp_path: Path, whole: bool) -> None:
    async with HeldSite(pages=3) as site:
        (tmp_path / "site.py").write_text(SPIDER.format(seeds=[f"{site.url}/"], more=""))
        first = await start(tmp_path, "run", "site.py", "--allow-private", "--quiet")
        await site.arrived()
        # Alone: its worker finishes the page that it has under way.
        first.signal_all(signal.SIGKILL) if whole else first.process.kill()
        await first.exit_code()
        second = await start(tmp_path, "run", "site.py", "--allow-private", "--json")
        event = await second.event()
        site.release()
        ended = await second.end()
        await first.end()

    said = f"a run of site-1 has ended without saying so (process {first.process.pid} on "
    assert [warning.startswith(said) for warning in event["warnings"]] == [True] * (not whole)
    assert ended.code == 0, ended
    assert ended.summary["done"] == len(site.names)

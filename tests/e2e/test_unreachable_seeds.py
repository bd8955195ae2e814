"""A seed that cannot be reached: cause and next try on the screen, and an end with that reason."""

import signal
import socket
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.raw_site import ok, site
from tests.e2e.running import call, start

SPIDER = """
from trotline import Page, Spider

site = Spider("site", retries={retries}, robots={robots})


@site.page(seeds=["{url}"])
def page(page: Page):
    yield {{"url": page.url}}
"""


def nobody_listens() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}/"


async def held_back(folder: Path) -> str:
    """What a run says first about why nothing happens; then it is stopped."""
    running = await start(folder, "run", "site.py", "--allow-private", "--json")
    said = ""
    while not said:
        said = (await running.event()).get("held_back", "")
    running.process.send_signal(signal.SIGINT)
    assert (await running.end()).code == 130
    return said


@pytest.mark.parametrize("robots", [False, True])
async def test_the_cause_and_the_next_try_are_on_the_screen(tmp_path: Path, robots: bool) -> None:
    (tmp_path / "site.py").write_text(SPIDER.format(url=nobody_listens(), retries=3, robots=robots))
    said = await held_back(tmp_path)
    assert "Connection refused, again in " in said
    assert said.startswith("robots.txt of 127.0.0.1:" if robots else "127.0.0.1:")


async def test_a_robots_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    async with site(ok(b"", status="503 Later")) as there:
        (tmp_path / "site.py").write_text(SPIDER.format(url=there.url("/"), retries=3, robots=True))
        said = await held_back(tmp_path)
    assert said.startswith(f"robots.txt of 127.0.0.1:{there.port}: 503, again in ")


async def test_a_seed_that_waits_is_on_the_screen_while_others_are_read(tmp_path: Path) -> None:
    async with HeldSite(pages=3) as there:
        spider = SPIDER.format(url=nobody_listens(), retries=3, robots=False)
        (tmp_path / "site.py").write_text(spider.replace("seeds=[", f'seeds=["{there.url}/held/slow", '))
        said = await held_back(tmp_path)
        there.release()
    assert "Connection refused, again in " in said


async def test_a_seed_that_is_given_up_is_on_the_screen_while_others_are_read(tmp_path: Path) -> None:
    async with HeldSite(pages=3) as there:
        spider = SPIDER.format(url="http://no-such-host.invalid/", retries=3, robots=False)
        (tmp_path / "site.py").write_text(spider.replace("seeds=[", f'seeds=["{there.url}/held/slow", '))
        running = await start(tmp_path, "run", "site.py", "--allow-private")
        await running.line("dead: unreachable: no-such-host.invalid does not exist")
        there.release()
        assert (await running.end()).code == 3


@pytest.mark.parametrize(
    ("body", "why", "code"),
    [
        (b"<urlset></urlset>", "1  sitemaps that list no URL", 4),
        (b"<urlset><url><loc>http://127", "1  sitemap: nothing could be read from it", 3),
        (b"<urlset><url><loc>http://a.example/1</loc></url></urlset>", "1  URLs of sitemaps on other hosts", 4),
    ],
    ids=["empty", "broken", "another host"],
)
async def test_a_run_whose_only_sitemap_leads_nowhere_says_why(
    tmp_path: Path, body: bytes, why: str, code: int
) -> None:
    async with site(ok(body)) as there:
        spider = SPIDER.format(url="", retries=0, robots=False)
        (tmp_path / "site.py").write_text(spider.replace('seeds=[""]', f'sitemap="{there.url("/sitemap.xml")}"'))
        ended = await call(tmp_path, "run", "site.py", "--allow-private")
    assert ended.code == code, ended
    assert why in ended.out
    tried = await call(tmp_path, "try", "site.py", "--allow-private")
    assert "Give a URL: trotline try site.py page URL --allow-private" in tried.err


@pytest.mark.parametrize("robots", [False, True])
async def test_a_run_whose_only_seed_fails_ends_with_that_reason(tmp_path: Path, robots: bool) -> None:
    (tmp_path / "site.py").write_text(SPIDER.format(url=nobody_listens(), retries=0, robots=robots))
    ended = await call(tmp_path, "run", "site.py", "--allow-private", "--json")
    assert ended.code == 3, ended.err
    [why] = ended.summary["reasons"]
    assert why.startswith("unreachable: ")
    assert why.endswith("no connection: Connection refused")


@pytest.mark.parametrize("robots", [False, True])
async def test_a_run_that_was_stopped_before_it_got_anything_says_why(tmp_path: Path, robots: bool) -> None:
    (tmp_path / "site.py").write_text(SPIDER.format(url=nobody_listens(), retries=3, robots=robots))
    running = await start(tmp_path, "run", "site.py", "--allow-private")
    await running.line("Connection refused, again in ")
    running.process.send_signal(signal.SIGINT)
    summary = (await running.end()).out.partition("site: interrupted")[2]
    assert "  waiting   1, for a retry\n" in summary
    assert f"  held back {'robots.txt of ' if robots else ''}127.0.0.1:" in summary
    assert "Connection refused\n" in summary


async def test_a_run_that_was_rate_limited_until_its_end_says_so(tmp_path: Path) -> None:
    async with site(ok(b"", "Retry-After: 60", status="429 Slow")) as there:
        (tmp_path / "site.py").write_text(SPIDER.format(url=there.url("/"), retries=3, robots=False))
        running = await start(tmp_path, "run", "site.py", "--allow-private", "--json")
        while not (await running.event()).get("held_back"):
            pass
        running.process.send_signal(signal.SIGINT)
        ended = await running.end()
    assert ended.summary["held_back"] == f"127.0.0.1:{there.port}: 429"
    assert (ended.summary["waiting"], ended.summary["delayed"]) == (1, 1)

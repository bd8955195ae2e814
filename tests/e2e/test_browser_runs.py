"""`trotline run` with the browser-like client, against a site that recognizes Python by its TLS."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.fingerprint_site import FingerprintSite, Seen, python_hello
from tests.e2e.running import call

from trotline.testing.torture.certificates import Authority

SPIDER = """
from trotline import Page, Spider

site = Spider("site", pace="200/s", retries=0{options})


@site.page(key="url", seeds={seeds}{route})
def page(page: Page):
    yield {{"url": page.url, "text": page.css("h1::text").get()}}
"""


def not_python(seen: Seen) -> bool:
    return seen.hello.ciphers != python_hello().ciphers


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    folder = tmp_path / "authority"
    folder.mkdir()
    return Authority(folder)


async def run(
    folder: Path, authority: Authority, there: FingerprintSite, options: str, route: str = "", pages: int = 12
) -> tuple[Any, list[dict[str, Any]]]:
    seeds = [there.url(f"/{number}") for number in range(pages)]
    (folder / "site.py").write_text(SPIDER.format(seeds=seeds, options=options, route=route))
    # The system's authorities, for both clients.
    ended = await call(
        folder, "run", "site.py", "--allow-private", "--json", "--out", "rows.jsonl",
        env={"SSL_CERT_FILE": authority.path("ca.pem")},
    )  # fmt: skip
    rows = folder / "rows.jsonl"
    lines = rows.read_text().splitlines() if rows.exists() else []
    return ended, [json.loads(line) for line in lines]


async def test_the_default_client_is_blocked_by_such_a_site(tmp_path: Path, authority: Authority) -> None:
    with FingerprintSite(authority.server(), not_python).running() as there:
        ended, rows = await run(tmp_path, authority, there, "", pages=3)
    assert (ended.code, rows) == (3, []), ended
    assert ended.summary["dead"] == 3


@pytest.mark.parametrize(("options", "route"), [(', client="browser"', ""), ("", ', client="browser"')])
async def test_a_spider_or_a_route_with_the_browser_like_client_gets_the_pages(
    tmp_path: Path, authority: Authority, options: str, route: str
) -> None:
    with FingerprintSite(authority.server(), not_python).running() as there:
        ended, rows = await run(tmp_path, authority, there, options, route)
    assert ended.code == 0, ended
    assert len(rows) == 12
    pages = [seen for seen in there.log if seen.path != "/robots.txt"]
    assert {seen.alpn for seen in pages} == {"h2"}
    assert len({seen.header("user-agent") for seen in pages}) == 1
    # robots.txt is asked for by the spider's client, and by no other one.
    of_rules = {seen.hello.ciphers == python_hello().ciphers for seen in there.log if seen.path == "/robots.txt"}
    assert of_rules == {not options}


async def test_a_blocked_page_is_tried_once_with_the_browser_like_client(tmp_path: Path, authority: Authority) -> None:
    with FingerprintSite(authority.server(), not_python).running() as there:
        ended, rows = await run(tmp_path, authority, there, ', when_blocked="browser"', pages=30)
    assert ended.code == 0, ended
    assert len(rows) == 30
    pages = [seen for seen in there.log if seen.path != "/robots.txt"]
    passed = [seen for seen in pages if not_python(seen)]
    assert len(passed) == 30
    assert {seen.path for seen in passed} == {f"/{number}" for number in range(30)}


async def test_what_is_blocked_for_both_is_buried_and_not_tried_for_ever(tmp_path: Path, authority: Authority) -> None:
    with FingerprintSite(authority.server(), lambda _: False).running() as there:
        ended, rows = await run(tmp_path, authority, there, ', when_blocked="browser"', pages=2)
    assert (ended.code, rows) == (3, []), ended
    assert ended.summary["dead"] == 2
    tried = [(seen.path, not_python(seen)) for seen in there.log if seen.path != "/robots.txt"]
    assert sorted(tried) == [("/0", False), ("/0", True), ("/1", False), ("/1", True)]


async def test_order_of_headers_is_enough_to_tell_the_clients_apart(tmp_path: Path, authority: Authority) -> None:
    """Over HTTP/1.1, with a filter that looks at headers only."""

    def like_a_browser(seen: Seen) -> bool:
        names = [name.lower() for name, _ in seen.headers]
        return "accept-language" in names and names.index("user-agent") < names.index("accept-language")

    with FingerprintSite(authority.server(), like_a_browser, h2=False).running() as there:
        ended, rows = await run(tmp_path, authority, there, ', when_blocked="browser"', pages=3)
    assert ended.code == 0, ended
    assert len(rows) == 3
    assert {seen.alpn for seen in there.log} == {"http/1.1"}


async def test_without_the_package_the_spider_is_refused_with_the_command_that_installs_it(tmp_path: Path) -> None:
    # Hides the package from the import system.
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['wreq'] = None\n")
    for options in (', client="browser"', ', when_blocked="browser"'):
        (tmp_path / "site.py").write_text(SPIDER.format(seeds=["https://shop.example/"], options=options, route=""))
        ended = await call(tmp_path, "run", "site.py", env={"PYTHONPATH": str(tmp_path)})
        assert ended.code == 2, ended
        assert "needs the package wreq" in ended.err
        assert "pip install '.[browser]'" in ended.err

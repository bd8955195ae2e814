"""Proxy pools on the command line: who refuses what, what is said, and that `try` goes through a real proxy."""

import json
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call

from trotline.testing import ForwardProxy

SPIDER = """
from trotline import Page, Spider

site = Spider("site", pace="200/s", hosts=["127.0.0.1"], retries=0{more})


@site.page(key="name", seeds=["{url}/page/1"])
def page(page: Page):
    yield {{"name": page.css("h1::text").get()}}
    {then}
"""
PASSWORD = "s3cret-77"  # noqa: S105 - of the test's own proxy
POOLS = """
[pools.home]
kind = "residential"
region = "eu"
proxies = ["{url}"]

[pools.gate]
endpoint = "http://anna:s3cret-77@127.0.0.1:9"
slots = 3
"""


def write(folder: Path, url: str = "http://127.0.0.1:1", more: str = "", then: str = "", proxy: str = "") -> None:
    (folder / "site.py").write_text(SPIDER.format(url=url, more=more, then=then))
    (folder / "proxies.toml").write_text(POOLS.format(url=proxy or "http://anna:s3cret-77@127.0.0.1:9"))
    (folder / "proxies.toml").chmod(0o600)


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (["run", "site.py"], "spider 'site': there is no proxy pool 'hoome'", "No proxies are set"),
        (["try", "site.py"], "spider 'site': there is no proxy pool 'hoome'", "No proxies are set"),
        (["work", "site.py"], "spider 'site': there is no proxy pool 'hoome'", "No proxies are set"),
        (["run", "site.py", "--proxies", "proxies.toml"], "no proxy pool 'hoome'", "Did you mean 'home'? Pools: gate"),
        (["start", "site.py", "--proxies", "proxies.toml"], "no proxy pool 'hoome'", "Did you mean 'home'?"),
        (["push", "site.py", "--proxies", "proxies.toml"], "no proxy pool 'hoome'", "Did you mean 'home'?"),
        (["coordinate", "site.py", "--proxies", "proxies.toml"], "no proxy pool 'hoome'", "Did you mean 'home'?"),
        (["run", "site.py", "--proxies", "none.toml"], "none.toml cannot be read: No such file", "Give a .toml"),
        (["run", "site.py", "--proxies", "http://a:b@c:1"], "--proxies: this is a URL", "docs/reference"),
        (["work", "site.py", "--pool", "home"], "there is no proxy pool 'home'", "No proxies are set"),
        (["work", "site.py", "--region", "eu"], "no proxy pool has the region 'eu'", "No proxies are set"),
        (
            ["work", "site.py", "--proxies", "proxies.toml", "--pool", "hmoe"],
            "there is no proxy pool 'hmoe'",
            "Did you mean 'home'?",
        ),
        (
            ["work", "site.py", "--proxies", "proxies.toml", "--region", "asia"],
            "no proxy pool has the region 'asia'",
            "Regions: eu.",
        ),
    ],
)
async def test_a_pool_that_does_not_exist_is_refused_by_every_command(
    tmp_path: Path, words: list[str], says: str, hint: str
) -> None:
    write(tmp_path, more=', pool="hoome"')
    ended = await call(tmp_path, *words)

    assert ended.code == 2, ended
    assert says in ended.err
    assert hint in ended.err
    assert "s3cret" not in ended.err + ended.out


async def test_a_handler_that_names_an_unknown_pool_is_buried_with_the_pools_that_exist(tmp_path: Path) -> None:
    async with HeldSite(pages=3, held=()) as site:
        write(tmp_path, site.url, more=', pool="direct"', then='yield page.task("/page/2", pool="hoome")')
        ended = await call(tmp_path, "run", "site.py", "--allow-private", "--proxies", "proxies.toml")
        dead = await call(tmp_path, "dead", "site", "--json")

    assert ended.code == 3, ended
    assert "note: spider 'site' has pool='direct': no proxy is used" in ended.err
    [grave] = [event for event in dead.events if "why" in event]
    assert grave["why"].startswith("handler: InvalidValue")
    assert "there is no proxy pool 'hoome'. Did you mean 'home'? Pools: gate, home." in json.dumps(grave)


@pytest.mark.parametrize("command", ["run", "work", "start", "push", "coordinate", "try"])
async def test_a_spider_that_names_no_pool_of_a_toml_is_refused_and_nothing_is_fetched(
    tmp_path: Path, command: str
) -> None:
    async with HeldSite(pages=3, held=()) as site:
        write(tmp_path, site.url)
        ended = await call(tmp_path, command, "site.py", "--proxies", "proxies.toml")
        assert not site.visits

    assert ended.code == 2, ended
    assert "spider 'site' names no proxy pool, and proxies are set: its pages would be fetched directly" in ended.err
    assert "Spider(pool='gate'). Pools: gate, home. Without a proxy on purpose: pool='direct'." in ended.err


async def test_with_a_plain_list_a_spider_that_names_no_pool_goes_through_it(tmp_path: Path) -> None:
    async with HeldSite(pages=3, held=()) as site, ForwardProxy(user="anna", password=PASSWORD) as proxy:
        write(tmp_path, site.url, then='yield page.task("/page/2")')
        (tmp_path / "proxies.txt").write_text(proxy.url)
        (tmp_path / "proxies.txt").chmod(0o600)
        ended = await call(tmp_path, "run", "site.py", "--allow-private", "--proxies", "proxies.txt")

        assert ended.code == 0, ended
        assert set(site.visits) == {"page/1", "page/2"}
        assert sum("/page/" in asked or "CONNECT" in asked for asked in map(str, proxy.asked)), proxy.asked
        assert "note: all pages go through the proxy pool 'default'" in ended.err


async def test_tasks_that_were_put_without_the_file_are_not_fetched_directly(tmp_path: Path) -> None:
    async with HeldSite(pages=3, held=()) as site:
        write(tmp_path, site.url)
        (tmp_path / "proxies.txt").write_text("http://127.0.0.1:9")
        started = await call(tmp_path, "start", "site.py", "--detach")
        assert started.code == 0, started
        words = ("--allow-private", "--proxies", "proxies.txt", "--max-time", "3s")
        worked = await call(tmp_path, "work", "site.py", *words)
        assert not site.visits

    assert worked.code == 0, worked
    looked = await call(tmp_path, "status", "site", "--json")
    assert '"waiting":1' in looked.out
    assert " via default" in looked.out


async def test_start_says_that_names_are_not_checked_and_push_names_bad_lines(tmp_path: Path) -> None:
    write(tmp_path, more=', pool="home"')
    started = await call(tmp_path, "start", "site.py", "--detach")
    assert started.code == 0, started
    assert "note: pool names are not checked here (home); to check them: --proxies FILE" in started.err

    lines = [f'{{"url": "http://127.0.0.1:1/page/{pool}", "proxy_pool": "{pool}"}}' for pool in ("gate", "gaet", "a b")]
    (tmp_path / "urls.txt").write_text("\n".join(lines))
    pushed = await call(tmp_path, "push", "site.py", "urls.txt", "--proxies", "proxies.toml")
    assert pushed.code == 3, pushed
    assert "1 new task" in pushed.out
    assert "line 2: there is no proxy pool 'gaet'. Did you mean 'gate'? Pools: gate, home." in pushed.err
    assert "line 3: a task's pool is 'a b'; give the name of a pool" in pushed.err

    watched = await call(tmp_path, "status", "site", "--json")
    assert '"127.0.0.1:1 via home"' in watched.out
    assert '"127.0.0.1:1 via gate"' in watched.out
    paced = await call(tmp_path, "pace", "--host", "127.0.0.1:1", "via", "home", "2/s")
    assert paced.code == 0, paced
    assert "127.0.0.1:1 via home" in paced.out
    paused = await call(tmp_path, "pause", "site", "--lane", "127.0.0.1:1 via home")
    assert "trotline resume site --lane '127.0.0.1:1 via home'" in paused.out
    traced = await call(tmp_path, "trace", "http://127.0.0.1:1/page/1", "site.py")
    assert "127.0.0.1:1 via home" in traced.out, traced
    assert "--lane '127.0.0.1:1 via home'" in traced.out


async def test_doctor_names_the_pools_and_their_sizes(tmp_path: Path) -> None:
    write(tmp_path, more=', pool="home"')
    (tmp_path / "proxies.toml").chmod(0o644)
    ended = await call(tmp_path, "doctor", "site.py", "--proxies", "proxies.toml")

    assert ended.code == 0, ended
    assert "pool home: 1 proxy (residential, eu) from proxies.toml" in ended.out
    assert "pool gate: 3 slots (gateway) from proxies.toml" in ended.out
    assert "proxies.toml has logins, and every user of this machine can read it; try: chmod 600" in ended.out
    assert "s3cret" not in ended.out + ended.err

    (tmp_path / "proxies.toml").write_text("[pools")
    ended = await call(tmp_path, "doctor", "site.py", env={"PROXY_LIST": "proxies.toml"})
    assert ended.code == 2, ended
    assert "proxies.toml cannot be read" in ended.out


async def test_try_goes_through_the_pool(tmp_path: Path) -> None:
    async with HeldSite(pages=3, held=()) as site, ForwardProxy(user="anna", password=PASSWORD) as proxy:
        write(tmp_path, site.url, more=', pool="home"', proxy=proxy.url)
        ended = await call(tmp_path, "try", "site.py", "--allow-private", "--proxies", "proxies.toml")
        assert ended.code == 0, ended
        assert proxy.asked
        through = len(proxy.asked)

        write(tmp_path, site.url, more=', pool="home"', proxy="http://127.0.0.1:9")
        failed = await call(tmp_path, "try", "site.py", "--allow-private", "--proxies", "proxies.toml")
    assert failed.code == 3, failed
    assert len(proxy.asked) == through, "there is no other way out"
    assert "s3cret" not in ended.out + ended.err + failed.out + failed.err

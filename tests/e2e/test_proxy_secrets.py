"""A canary as the password of a proxy: the proxy gets it, and it is seen nowhere else."""

import asyncio
import signal
from pathlib import Path

import pytest
from tests.e2e.running import WITHIN
from tests.e2e.test_secrets import CANARY, OWN, RUN, Folder, Shop, killed_and_resumed

# Fixtures of the other file.
from tests.e2e.test_secrets import folder as folder
from tests.e2e.test_secrets import shop as shop

from trotline.testing.proxy import ForwardProxy
from trotline.testing.real_proxies import microsocks

PASSWORD = f"{CANARY}/%"
"""With characters that are spelt differently in a URL."""


def use(folder: Folder, proxy: ForwardProxy, **others: str) -> None:
    folder.env |= {"TROTLINE_PROXY": "env:MY_PROXY", "MY_PROXY": proxy.url, **others}


async def test_a_proxys_password_is_seen_nowhere_but_at_the_proxy(shop: Shop, folder: Folder) -> None:
    async with ForwardProxy(user="anna", password=PASSWORD) as proxy:
        use(folder, proxy)
        # Looks at the arguments of every process while a page is held.
        await killed_and_resumed(folder, shop)
        for words in (
            ("status", "shop", "--json"), ("dead", "shop", "--json"), ("dead", "shop", "--export", "dead.jsonl"),
            ("doctor", "shop.py"), ("doctor", "shop.py", "--json"), ("try", "shop.py", "--allow-private", "--all"),
            ("try", "shop.py", "--allow-private", "--json"),
            ("try", "shop.py", "--proxy-mode", "name", "--allow-private"),
        ):  # fmt: skip
            await folder.call(*words)

    assert {asked.login for asked in proxy.asked} == {f"anna:{PASSWORD}"}
    assert [one for one in (*shop.site.requests, *shop.elsewhere.requests) if b"roxy-" in one] == []
    assert folder.leaks() == []


async def test_what_goes_wrong_with_a_proxy_is_told_without_its_password(shop: Shop, folder: Folder) -> None:
    shop.hold.set()
    async with ForwardProxy(user="anna") as proxy:
        use(folder, proxy, MY_PROXY=f"http://anna:{CANARY}@{proxy.public}")
        running = await folder.start(*RUN, "--json")
        assert running.process.stderr is not None
        told = await asyncio.wait_for(running.process.stderr.readuntil(b"pages wait for it\n"), WITHIN)
        running.signal_all(signal.SIGTERM)
        folder.said.append(told.decode())
        folder.heard(await running.end())
        assert f"proxy {proxy.public}: authentication failed (407)" in folder.said[0]
        proxy.password, proxy.refuse = CANARY, lambda _: 403
        ended = await folder.call(*RUN, "--fresh", "--json")
        assert (ended.code, ended.summary["dead"]) == (3, 1), ended
        [grave] = (await folder.call("dead", "shop", "--json")).events
        assert f"unreachable: proxy {proxy.public} refused to connect to {OWN}" in grave["why"]
    ended = await folder.call("try", "shop.py", "--allow-private", "--json")
    assert f"proxy {proxy.public}: unreachable" in ended.err + ended.out
    assert folder.leaks() == []


async def test_an_unexpected_error_behind_a_proxy_is_reported_without_its_password(shop: Shop, folder: Folder) -> None:
    shop.hold.set()
    spider = (folder.path / "shop.py").read_text()
    (folder.path / "shop.py").write_text(spider.replace("os.environ['SHOP_TOKEN']}", "os.environ['MY_PROXY']}"))
    async with ForwardProxy(user="anna", password=CANARY) as proxy:
        use(folder, proxy)
        await folder.call(*RUN)
        await folder.call("dead", "shop", "--json")
        await folder.call(*RUN, "--fresh", BREAK="open_robots")
    assert folder.leaks() == []
    assert folder.reports()


WRONG = {
    "on the command line": f"http://anna:{CANARY}@127.0.0.1:3128",
    "another scheme": f"socks4://anna:{CANARY}@127.0.0.1:1080",
    "no port": f"http://anna:{CANARY}@proxy.test",
    "a port that is none": f"http://anna:{CANARY}@proxy.test:port{CANARY}",
    "a path": f"http://anna:{CANARY}@proxy.test:3128/{CANARY}",
    "half an address": f"http://anna:{CANARY}@[::1",
    "no URL": CANARY,
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_proxy_that_is_none_is_complained_about_without_its_password(folder: Folder, case: str) -> None:
    for words, env in (
        (("--proxy", WRONG[case]), {}),
        (("--proxy", "env:MY_PROXY"), {"MY_PROXY": WRONG[case]}),
        ((), {"TROTLINE_PROXY": WRONG[case]}),
    ):
        if case == "on the command line" and env:
            continue
        ended = await folder.call(*RUN, *words, **env)
        assert ended.code == 2, ended
        assert "proxy" in ended.err.lower()
    (folder.path / "trotline.toml").write_text(f'proxy = "{WRONG[case]}"\nslots = "x"\n')
    assert (await folder.call(*RUN)).code == 2
    assert folder.leaks() == []


def _kept(file: Path, text: str) -> Path:
    file.touch(mode=0o600)
    file.write_text(text + "\n")
    return file


async def test_a_proxy_can_come_from_a_file_that_is_ours_alone(shop: Shop, folder: Folder) -> None:
    shop.hold.set()
    async with ForwardProxy(user="anna", password=PASSWORD) as proxy:
        secret = _kept(folder.path / "proxy.txt", proxy.url)
        await folder.call("try", "shop.py", "--allow-private", "--proxy", "file:proxy.txt")
        assert f"{OWN}:{shop.site.port}" in {asked.target for asked in proxy.asked}
        secret.chmod(0o644)
        ended = await folder.call("try", "shop.py", "--allow-private", "--proxy", "file:proxy.txt")
    assert ended.code == 2
    assert "chmod 600" in ended.err
    assert folder.leaks() == []


async def test_a_run_goes_through_a_socks5_proxy_with_a_login(shop: Shop, folder: Folder) -> None:
    """The child processes get it with its scheme."""
    shop.hold.set()
    with microsocks(leaves_from="127.0.0.61", user="anna", password=CANARY) as proxy:
        folder.env |= {"TROTLINE_PROXY": "env:MY_PROXY", "MY_PROXY": proxy.url}
        ended = await folder.call(*RUN, "--json")
        assert ended.summary["done"] > 0, ended
        folder.env["MY_PROXY"] = proxy.url_as("anna", f"{CANARY}-wrong")
        refused = await folder.call("try", "shop.py", "--allow-private")
    assert "authentication failed (SOCKS5 login)" in refused.out + refused.err, refused
    assert folder.leaks() == []

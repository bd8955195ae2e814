"""A site that bans by address, proxies that leave from addresses of their own, and a spider that goes through them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from trotline.testing.ban_site import BanRules, BanSite, Request
from trotline.testing.proxy import ForwardProxy

SPIDER = """
from trotline import Page, Spider

site = Spider("site", pool="dc", pace="{pace}", robots=False, retries=3)

@site.page(seeds=[{seeds}], key="url")
def entry(page: Page):
    yield page.follow({links!r}, product)

@site.page(key="path")
def product(page: Page):
    yield {{"path": page.url, "name": page.url}}
"""
PAGE = "<h1>{path}</h1>{links}"


@dataclass
class World:
    """Sites under one address each, the proxies, and where they leave from."""

    sites: list["Banning"]
    proxies: list[ForwardProxy]
    addresses: list[str]

    def write(self, folder: Path, *, pace: str, pool: str = 'kind = "datacenter"') -> None:
        """Spider and proxies.toml."""
        seeds = ", ".join(repr(site.url("/")) for site in self.sites)
        (folder / "site.py").write_text(SPIDER.format(pace=pace, seeds=seeds, links="a"))
        self.write_pool(folder, self.proxies, pool)

    def write_pool(self, folder: Path, proxies: Sequence[ForwardProxy], pool: str = 'kind = "datacenter"') -> None:
        listed = ", ".join(f'"{proxy.url}"' for proxy in proxies)
        (folder / "proxies.new").write_text(f"[pools.dc]\n{pool}\nproxies = [{listed}]\n")
        (folder / "proxies.new").chmod(0o600)
        (folder / "proxies.new").rename(folder / "proxies.toml")


def page_of(pages: int) -> Callable[[str], bytes]:
    """The entry page links to all others."""
    links = "".join(f'<a href="/p/{number}">{number}</a>' for number in range(pages))

    def body(path: str) -> bytes:
        return PAGE.format(path=path, links=links if path == "/" else "").encode()

    return body


class Banning(BanSite):
    """Bans these addresses from the beginning, and all of them at certain times."""

    banned: Collection[str] = ()
    forbidden: Collection[str] = ()
    """Paths that it answers to no address."""
    closed_until = 0.0
    _wanted = 0
    _path = ""
    _reached: asyncio.Event | None = None

    async def asked(self, times: int) -> None:
        """Until it was asked so often."""
        self._wanted, self._reached = times, asyncio.Event()
        if len(self.log) < times:
            await asyncio.wait_for(self._reached.wait(), 60)

    def answer(self, address: str, path: str) -> bytes:
        self._path = path
        given = super().answer(address, path)
        if self._reached is not None and len(self.log) >= self._wanted:
            self._reached.set()
        return given

    def judge(self, address: str, now: float) -> int:
        if address in self.banned or self._path in self.forbidden or now < self.closed_until:
            return 403
        return super().judge(address, now)


@asynccontextmanager
async def world(rules: BanRules, *, pages: int, proxies: int, sites: int = 1, first: int = 100) -> AsyncIterator[World]:
    addresses = [f"127.0.1.{first + number}" for number in range(proxies)]
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(Banning(rules, page=page_of(pages), host=f"127.0.0.{10 + number}"))
            for number in range(sites)
        ]
        ways = [await stack.enter_async_context(ForwardProxy(leaves_from=address)) for address in addresses]
        yield World(opened, ways, addresses)


def used_while_banned(site: BanSite, slack: float = 0.05) -> list[Request]:
    """Requests of an address after the site has answered it with 403, within the time of its ban."""
    found, banned_at = [], dict[str, float]()
    for request in site.log:
        if request.path == "/robots.txt":
            continue
        at = banned_at.get(request.address)
        if at is not None and at + slack < request.at < at + site.rules.ban_for:
            found.append(request)
        elif request.status == 403:
            banned_at[request.address] = request.at
    return found

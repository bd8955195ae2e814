"""The pools of a Scrapy process: which one a request goes out through, and the member that its lease has."""

import random
from collections.abc import Collection
from typing import TypeGuard

import msgspec
from scrapy import Request, Spider

from trotline.bridges.scrapy.download_handlers import DownloadHandlers
from trotline.bridges.scrapy.held_account import HeldAccount
from trotline.config import backends, proxy_pools
from trotline.config.proxy_pools import PoolBook
from trotline.errors import SettingsError
from trotline.model.lease import Lease
from trotline.model.outcome import Snooze
from trotline.model.proxy import Proxy, Way
from trotline.model.proxy_pool import NO_PROXY, base_pool, is_account_pool, lane_of, pool_of, without_pool
from trotline.model.time import Seconds
from trotline.processes.proxy_pool_registration import PoolKeeper
from trotline.rules import account_sessions, pool_names
from trotline.rules.private_addresses import (
    NOT_AN_ADDRESS,
    allowed,
    is_number,
    why_not_address,
    why_not_name,
    why_not_port,
)
from trotline.rules.tagged_json import NotData
from trotline.rules.task_checks import LONGEST_NAME

POOL = "trotline_pool"
"""The key of `request.meta`, and the attribute of a spider, that names a pool."""
UNKNOWN = "proxy is unknown to this process"
UNUSABLE = "proxy is of a kind that this process cannot use"
PRIVATE = "proxy is from a list over HTTP, and its address is not allowed"
_OF_COMMANDS = "; to allow it: --allow "
"""How the reason goes on that an address is private."""
NOWHERE = "it has no proxy pool, and proxies are set"


class Pools:
    """Read from the file of the setting TROTLINE_PROXIES. `open` and `keep` run in the client's loop."""

    def __init__(
        self, file: str, spider: Spider, own: str, handlers: DownloadHandlers, allow: Collection[str] = ()
    ) -> None:
        """`own`: the pool of requests that name none; `allow`: private hosts and networks that lists of proxies may be
        read from. SettingsError says what is wrong."""
        self._book = _loaded(file, allow)
        self._allowed = allowed(allow)
        self._handlers = handlers
        self._usable = handlers.schemes
        self._keeper: PoolKeeper | None = None
        self._seen: list[tuple[str, float]] | None = None
        self._served: tuple[str, ...] = ("",)
        self.chance = random.Random()  # noqa: S311 - spreads load
        self.default = pool_names.of_unnamed(str(getattr(spider, POOL, "") or own), self._book.listed)
        if why := pool_names.refusal(self.default, self._book.listed):
            raise SettingsError(f"the spider {spider.name!r}: {why}")
        if not self.default and self._book.proxied:
            what, _ = pool_names.unnamed(f"the spider {spider.name!r}", self._book.listed)
            pools = pool_names.listed(self._book.listed.pools)
            raise SettingsError(what, hint=f'Set TROTLINE_POOL, to one of: {pools}. Without a proxy: "{NO_PROXY}".')
        if self.default not in ("", NO_PROXY, *self.served):
            if why := handlers.unknown:
                raise SettingsError(f"the proxies of the pool {self.default!r} would not be used", hint=why)
            if self._can_use(self.default, private=True):
                raise SettingsError(
                    f"the proxies of the pool {self.default!r} are from a list over HTTP, and their addresses are not "
                    "allowed: they are private, or their ports are no web ports",
                    hint='To allow them, in the settings: TROTLINE_ALLOW = ["10.20.0.0/16"]',
                )
            raise SettingsError(
                f"the proxies of the pool {self.default!r} cannot be used with Scrapy's own download handler",
                hint="It connects to http:// proxies. For others set DOWNLOAD_HANDLERS to one that knows them; "
                "API gateways are for Trotline's own workers.",
            )

    @property
    def proxied(self) -> bool:
        """Are there proxy pools? Then no request goes out directly by mistake."""
        return self._book.proxied and self.default != NO_PROXY

    @property
    def served(self) -> tuple[str, ...]:
        """The pools whose tasks this process takes; "" are tasks without one."""
        versions = [(pool.name, pool.version) for pool in self._book.pools()]
        if versions != self._seen:
            usable = (name for name in self._book.serves() if self._can_use(name))
            self._seen, self._served = versions, ("", *usable)
        return self._served

    async def open(self, frontier: str) -> None:
        self._keeper = PoolKeeper(self._book, await backends.open_proxy_pools(frontier))
        await self._keeper.register()

    async def keep(self) -> None:
        """Until it is cancelled: notices changes of the file."""
        if self._keeper is not None:
            await self._keeper.keep()

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.close()

    def name_of(self, request: Request) -> str:
        """NotData: there is no such pool, or the request would not go out through it."""
        name = self._named(request)
        if self._by_proxy(name) and (why := self._handlers.refusal(request)):
            raise NotData(why)
        return name

    def _named(self, request: Request) -> str:
        given = request.meta.get(POOL)
        if given is None:
            # A proxy of the project's own: it is its business.
            return NO_PROXY if request.meta.get("proxy") else self.default
        if type(given) is not str or len(given) > LONGEST_NAME:
            raise NotData(f"meta[{POOL!r}] is not the name of a pool")
        if why := pool_names.refusal(given, self._book.listed):
            raise NotData(why)
        return given

    def _by_proxy(self, name: str) -> bool:
        if is_account_pool(name):
            name = self._book.proxies_of(base_pool(name))
        return name not in ("", NO_PROXY)

    def account(self, lease: Lease, state: bytes, asked_at: Seconds) -> tuple[Proxy | None, HeldAccount] | Snooze:
        """The account of the lease, and its way out; Snooze: not by this process, or not yet."""
        account = self._book.account(pool_of(lease.task.lane), lease.member)
        if account is None:
            return Snooze(1.0, "account is unknown to this process")
        session = account_sessions.decoded(state, account.fingerprint)
        proxy = self._book.proxy_id(account, session.moves, session.proxy)
        way = self._book.proxy_of(account, session.moves, proxy) if proxy else None
        held = HeldAccount(lease, account, session, proxy, asked_at)
        if account.proxies == NO_PROXY:
            return None, held
        if self._is_usable(way):
            return way, held
        return Snooze(5.0, "its account has no proxy at the moment")

    def way(self, lease: Lease) -> Proxy | Snooze | None:
        """None: directly, on purpose. Snooze: not by this process, or not yet."""
        if not lease.member:
            return self._into_pool(lease)
        way = self._book.way(pool_of(lease.task.lane), lease.member, lease.task.lane)
        if way is None:
            return Snooze(1.0, UNKNOWN)
        if self._is_usable(way):
            return way
        return Snooze(1.0, PRIVATE if self._is_usable(way, private=True) else UNUSABLE)

    def _can_use(self, name: str, *, private: bool = False) -> bool:
        if is_account_pool(name):
            proxies = self._book.proxies_of(name)
            return proxies == NO_PROXY or self._can_use(proxies, private=private)
        ways = (self._book.way(name, member.id, "") for member in self._book.pool(name).members)
        return any(self._is_usable(way, private=private) for way in ways)

    def _is_usable(self, way: Way | None, *, private: bool = False) -> TypeGuard[Proxy]:
        """`private`: whatever its address is."""
        if not isinstance(way, Proxy) or way.scheme not in self._usable:
            return False
        return private or not way.listed_elsewhere or self._is_public(way)

    def _is_public(self, proxy: Proxy) -> bool:
        """The author of a list over HTTP must not choose what is connected to in this network. A name is resolved by
        Scrapy, and what it stands for is not checked."""
        host = proxy.host.lower().rstrip(".")
        if why_not_port(proxy.port):
            return False
        if is_number(host):
            why = why_not_address(host)
            return not why or (why != NOT_AN_ADDRESS and self._allowed.address(host))
        is_own = host == "localhost" or host.endswith(".localhost") or bool(why_not_name(host))
        return not is_own or self._allowed.name(host)

    def _into_pool(self, lease: Lease) -> Snooze | None:
        """A task without a pool was put before proxies were set: it moves to the lane of its pool."""
        task = lease.task
        pool = task.pool if task.pool == NO_PROXY else self.default
        if pool == NO_PROXY or (not pool and not self._book.proxied):
            return None
        if not pool:
            return Snooze(5.0, NOWHERE)
        lane = lane_of(without_pool(task.lane), pool)
        return Snooze(0.0, "moved", msgspec.structs.replace(task, pool=pool, lane=lane))


def _loaded(file: str, allow: Collection[str]) -> PoolBook:
    try:
        return proxy_pools.load(file, allow=allow)
    except SettingsError as error:
        what, private, more = error.what.partition(_OF_COMMANDS)
        if not private:
            raise
        # A project has no options.
        host = more.partition(",")[0]
        raise SettingsError(what, hint=f'To allow it, in the settings: TROTLINE_ALLOW = ["{host}"]') from error

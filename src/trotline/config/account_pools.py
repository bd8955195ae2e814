"""The account pools of a process, and the proxy that each account goes out through."""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from trotline.config.pool_members import Members
from trotline.config.pool_versions import versioned
from trotline.model.account import Account
from trotline.model.proxy import Way
from trotline.model.proxy_pool import NO_PROXY, Pool, PoolMember, account_id
from trotline.model.time import Moment
from trotline.rules import account_proxies

if TYPE_CHECKING:
    from trotline.config.account_table import AccountTable

ProxyMembers = Callable[[str], Members | None]
"""The members of a proxy pool; None: there is none of that name."""


class AccountPool(msgspec.Struct, frozen=True, kw_only=True):
    table: "AccountTable"
    pool: Pool
    accounts: dict[int, Account]
    """By member id."""

    def __repr__(self) -> str:
        return f"AccountPool({self.pool.name}, {len(self.accounts)})"


class _Kept(NamedTuple):
    """The proxy of an account, while its pool has these members."""

    members: tuple[PoolMember, ...]
    moves: int
    proxy: int


class AccountPools:
    def __init__(self, clock: Callable[[], Moment]) -> None:
        self._clock = clock
        self._pools: dict[str, AccountPool] = {}
        self._kept: dict[int, _Kept] = {}

    def set(self, tables: "Iterable[AccountTable]") -> None:
        """The tables of the file. Accounts are those of the new file, also where only a password has changed."""
        found = {}
        for table in tables:
            accounts = {account_id(each.full_name): each for each in table.accounts}
            known = self._pools.get(table.name)
            pool = versioned(
                table.name,
                table.rules,
                tuple(map(PoolMember, accounts)),
                known.pool if known is not None else None,
                table.changed_at,
                self._clock(),
            )
            found[table.name] = AccountPool(table=table, pool=pool, accounts=accounts)
        # Replaced at once: a worker reads them while another thread reloads.
        self._pools = found
        known_accounts = {number for each in found.values() for number in each.accounts}
        self._kept = {number: kept for number, kept in tuple(self._kept.items()) if number in known_accounts}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._pools)

    def get(self, name: str) -> AccountPool | None:
        return self._pools.get(name)

    def all(self) -> Collection[AccountPool]:
        return self._pools.values()

    def account(self, pool: str, member: int) -> Account | None:
        found = self._pools.get(pool)
        return None if found is None else found.accounts.get(member)

    def proxy_id(self, account: Account, moves: int, kept: int, members_of: ProxyMembers) -> int:
        """0: its proxy pool has no member at the moment, or it goes out directly."""
        found = members_of(account.proxies) if account.proxies != NO_PROXY else None
        if found is None or not found.members:
            return 0
        return kept if kept in found.ways else self._proxy(account, moves, found.members)

    def proxy_of(self, account: Account, moves: int, members_of: ProxyMembers, proxy: int = 0) -> Way | None:
        """None: its proxy pool has no member at the moment, or it goes out directly."""
        found = members_of(account.proxies) if account.proxies != NO_PROXY else None
        if found is None or not found.members:
            return None
        # Beyond the last slot of a gateway the next round has other sessions, so that a move is always to another exit.
        rounds = moves // len(found.members)
        chosen = proxy if proxy in found.ways else self._proxy(account, moves, found.members)
        return found.way_of(chosen, f"{account.full_name} {rounds}")

    def _proxy(self, account: Account, moves: int, members: tuple[PoolMember, ...]) -> int:
        number = account_id(account.full_name)
        kept = self._kept.get(number)
        if kept is None or kept.members is not members or kept.moves != moves:
            proxy = account_proxies.chosen(number, [member.id for member in members], moves)
            kept = self._kept[number] = _Kept(members, moves, proxy)
        return kept.proxy

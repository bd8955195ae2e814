"""The pools that exist: of proxies and of accounts, and each account as a pool of its own (`@buyers/anna`)."""

from collections.abc import Collection, Iterator, Mapping

from trotline.model.proxy_pool import ACCOUNT, ACCOUNTS, is_account_pool


class KnownPools(Collection[str]):
    """Names. A look-up costs the same with many accounts: it is made for every task that names a pool."""

    def __init__(
        self,
        proxies: Collection[str] = (),
        accounts: Mapping[str, Collection[str]] | None = None,
        logins: Collection[str] = (),
    ) -> None:
        """`accounts`: the names of the accounts by pool: `@buyers` -> anna, bert. `logins`: pools whose accounts have a
        password."""
        self.proxies = tuple(proxies)
        self.logins = frozenset(logins)
        self._accounts = {pool: dict.fromkeys(sorted(names)) for pool, names in (accounts or {}).items()}

    @property
    def pools(self) -> tuple[str, ...]:
        """Without single accounts."""
        return *self.proxies, *self._accounts

    def accounts(self, pool: str) -> Collection[str]:
        """The names of its accounts, sorted."""
        return self._accounts.get(pool, {})

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if not is_account_pool(name):
            return name in self.proxies
        pool, slash, account = name.partition(ACCOUNT)
        return account in self.accounts(pool) if slash else pool in self._accounts

    def __iter__(self) -> Iterator[str]:
        yield from self.pools
        for pool, names in self._accounts.items():
            yield from (f"{pool}{ACCOUNT}{name}" for name in names)

    def __len__(self) -> int:
        return len(self.pools) + sum(map(len, self._accounts.values()))

    def __repr__(self) -> str:
        return f"KnownPools({', '.join(self.pools)})"


def proxied(known: Collection[str] | None) -> bool:
    """Are there proxy pools? Then no page goes out directly by mistake. Account pools name their own way out."""
    if isinstance(known, KnownPools):
        return bool(known.proxies)
    return any(not name.startswith(ACCOUNTS) for name in known or ())

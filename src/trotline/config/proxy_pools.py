"""The pools of a process, of proxies and of accounts: read from a file, reloaded when it changes.

`load` refuses what it cannot read. `reload` is cheap (stat first) and never raises: a new file that cannot be read
leaves the pools as they are, and is reported once.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trotline.config import pool_members, proxy_lines
from trotline.config.account_pools import AccountPool, AccountPools
from trotline.config.http_proxy_list import EVERY, ListFeed
from trotline.config.pool_members import Digest, Members, digest
from trotline.config.pool_sources import Files, Source
from trotline.config.pool_table import PoolInfo, PoolTable
from trotline.config.pool_versions import versioned
from trotline.config.shrunk_pools import PoolSize, ShrunkPools
from trotline.errors import SettingsError
from trotline.model.account import Account
from trotline.model.proxy import Way
from trotline.model.proxy_pool import Pool, account_id, base_pool, names_account
from trotline.model.time import Moment, Seconds
from trotline.rules import pool_names
from trotline.rules.known_pools import KnownPools

if TYPE_CHECKING:
    from trotline.config.account_table import AccountTable

log = logging.getLogger("trotline.proxies")

NOTHING = Members(members=(), ways={})


class PoolLine(msgspec.Struct, frozen=True, kw_only=True):
    """One pool, for `trotline doctor`."""

    name: str
    size: int
    """Proxies, slots of a gateway, or accounts."""
    gateway: bool = False
    where: str
    info: PoolInfo = PoolInfo()
    proxies: str = ""
    """Of an account pool: the proxy pool that its accounts go out through, or `direct`."""


class _Loaded(msgspec.Struct, frozen=True, kw_only=True):
    source: Source
    pool: Pool
    members: Members
    feed: ListFeed | None = None

    @property
    def pending(self) -> bool:
        """Its list was never read: nothing to register."""
        return not self.members.members


class PoolBook:
    """Make it with `load`."""

    def __init__(
        self,
        files: Files | None,
        *,
        clock: Callable[[], Moment] = time.time,
        allow_private: bool = False,
        allow: Collection[str] = (),
        every: Seconds = EVERY,
        digest: Digest = digest,
    ) -> None:
        self._files = files
        self._clock = clock
        self._allow_private = allow_private
        self._allow = allow
        self._every = every
        self._digest = digest
        self._pools: dict[str, _Loaded] = {}
        self._accounts = AccountPools(clock)
        self.listed = KnownPools()
        """The pools that tasks can name, as far as the file could be read."""
        self._said: dict[str, str] = {}
        """Complaints that still hold: about -> what."""
        self._raises = False
        """While `load` reports a failure as an error, it is not logged too."""
        self._shrunk = ShrunkPools(clock)
        self._unreadable = False
        """The file was never read: which pools exist is unknown."""
        self.notes: tuple[str, ...] = ()
        """Warnings: bad lines, duplicates, files that every user can read."""

    @property
    def names(self) -> tuple[str, ...]:
        """All pools: of proxies, then of accounts."""
        return *self._pools, *self._accounts.names

    @property
    def proxy_names(self) -> tuple[str, ...]:
        return tuple(self._pools)

    @property
    def proxied(self) -> bool:
        """Are there proxy pools? A file that could not be read may have some."""
        return self._unreadable or bool(self._pools)

    @property
    def trouble(self) -> str:
        """Why the file, or a list over HTTP, cannot be used now, and which pools became smaller; empty if all is
        well."""
        said = [
            f"pool {about!r}: {why}; its last good list is used" if about else why
            for about, why in sorted(self._said.items())
        ]
        return "; ".join([*said, *self._shrunk.said(self._size_now)])

    def _size_now(self, name: str) -> PoolSize:
        found = self._pools.get(name)
        lines = None if found is None else found.source.lines
        return PoolSize(self.size(name), lines.complaint() if lines is not None else "")

    @property
    def known(self) -> KnownPools | None:
        """The pools that tasks can name, also single accounts; None while the file could not be read at all."""
        return None if self._unreadable else self.listed

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are watched: the .toml, its lists, its weights."""
        return () if self._files is None else tuple(path.absolute() for path in self._files.signatures)

    def pool(self, name: str) -> Pool:
        """As the frontier gets it; SettingsError if there is none of that name."""
        return self._found(name).pool

    def info(self, name: str) -> PoolInfo | None:
        """None: an account pool."""
        found = self._found(name)
        return found.source.table.info if isinstance(found, _Loaded) else None

    def proxies_of(self, name: str) -> str:
        """The proxy pool of an account pool, or `direct`; empty: it is not one."""
        found = self._accounts.get(name)
        return "" if found is None else found.table.proxies

    def size(self, name: str) -> int:
        """Its members; 0 if there is none of that name."""
        if (accounts := self._accounts.get(name)) is not None:
            return len(accounts.accounts)
        found = self._pools.get(name)
        return 0 if found is None else len(found.members.members)

    def account(self, pool: str, member: int) -> Account | None:
        return self._accounts.account(pool, member)

    def named_account(self, pool: str) -> Account | None:
        """Of `@buyers/anna`; None: it is not an account of this file."""
        return self.account(base_pool(pool), account_id(pool)) if names_account(pool) else None

    def proxy_id(self, account: Account, moves: int, kept: int) -> int:
        """The proxy that an account keeps, or the one that is chosen for it; 0: none."""
        return self._accounts.proxy_id(account, moves, kept, self._members)

    def proxy_of(self, account: Account, moves: int, proxy: int = 0) -> Way | None:
        """The way out of an account, after `moves` to other proxies."""
        return self._accounts.proxy_of(account, moves, self._members, proxy)

    def _members(self, pool: str) -> Members | None:
        found = self._pools.get(pool)
        return None if found is None else found.members

    def public(self, pool: str, member: int) -> str:
        """A member as people know it: host:port, or the name of the account. Empty: this file does not have it."""
        account = self.account(pool, member)
        way = self.way(pool, member, "")
        return account.name if account is not None else way.public if way is not None else ""

    def way(self, pool: str, member: int, lane: str) -> Way | None:
        """The way out through a member for a lane; None if this file does not have it."""
        found = self._pools.get(pool)
        return None if found is None else found.members.way(member, lane)

    def pools(self) -> list[Pool]:
        """All that can be registered."""
        proxies = [each.pool for each in self._pools.values() if not each.pending]
        return [*proxies, *(each.pool for each in self._accounts.all())]

    def serves(self, pools: Collection[str] = (), regions: Collection[str] = ()) -> tuple[str, ...]:
        """The pools of a worker with these `--pool` and `--region`; none given: all. A pool without a region is served
        everywhere; one with members of several regions where all of them are."""
        if self._unreadable:
            return ()
        for name in pools:
            self._found(name)
        wanted = {region.lower() for region in regions}
        of_pool = {name: each.members.regions for name, each in self._pools.items()}
        known = {region for found in of_pool.values() for region in found}
        # Accounts are where their proxies are.
        of_pool |= {each.pool.name: of_pool.get(each.table.proxies, frozenset()) for each in self._accounts.all()}
        if odd := sorted(wanted - known):
            none = "No pool of the file has one." if self.names else "No proxies are set: give a file (--proxies FILE)."
            hint = f"Regions: {', '.join(sorted(known))}." if known else none
            raise SettingsError(f"no proxy pool has the region {odd[0][:80]!r}", hint=hint)
        return tuple(
            name for name, found in of_pool.items() if (not pools or name in pools) and (not wanted or found <= wanted)
        )

    def lines(self) -> list[PoolLine]:
        proxies = [
            PoolLine(
                name=name,
                size=len(each.members.members),
                gateway=each.source.table.gateway is not None,
                where=each.feed.host if each.feed is not None else each.source.where,
                info=each.source.table.info,
            )
            for name, each in self._pools.items()
        ]
        accounts = [
            PoolLine(name=each.pool.name, size=len(each.accounts), where=each.table.where, proxies=each.table.proxies)
            for each in self._accounts.all()
        ]
        return [*proxies, *accounts]

    def read(self, *, patient: bool = False) -> None:
        """For the first time. SettingsError if it cannot be used; `patient`: then it is read by a later `reload`."""
        if self._files is None:
            return
        self._raises = not patient
        try:
            self._first_read(self._files, patient)
        except SettingsError as error:
            if not patient:
                raise
            self._unreadable = True
            self._complain("", f"{error.what}; no pool is used")
        finally:
            self._raises = False

    def _first_read(self, files: Files, patient: bool) -> None:
        sources = files.read()
        loaded, notes = self._loaded(sources.pools, first=True)
        for each in loaded.values():
            if each.pending and not patient:
                assert each.feed is not None  # noqa: S101 - only a list over HTTP can be missing
                raise SettingsError(
                    f"pool {each.pool.name!r}: its list at {each.feed.host} cannot be used: "
                    + self._said.get(each.pool.name, "it was not read"),
                    hint="Is the server reachable from here? A list has one proxy a line.",
                )
        self._use(loaded, sources.accounts)
        self.notes = (*sources.notes, *notes)

    def reload(self) -> list[Pool]:
        """The pools that have changed since the last call. Never waits and never raises."""
        if self._files is None:
            return []
        before = {each.name: each for each in self.pools()}
        sizes = {name: self.size(name) for name in self.names}
        if self._files.changed():
            self._reread(self._files)
        for name, each in self._pools.items():
            if each.feed is not None and (result := each.feed.take()) is not None:
                self._pools[name] = self._from_feed(each.source, each.feed, result.text, result.failure, each)
        self._shrunk.changed(sizes, self._size_now)
        return [each for each in self.pools() if each is not before.get(each.name)]

    def _reread(self, files: Files) -> None:
        try:
            sources = files.read()
            loaded, notes = self._loaded(sources.pools, first=False)
        except SettingsError as error:
            self._complain("", f"{error.what}; the pools stay as they were")
            return
        self._calm("")
        self._use(loaded, sources.accounts)
        self._unreadable = False
        notes = [*sources.notes, *notes]
        for note in notes:
            if note not in self.notes:
                log.warning("proxies.note %s", note)
        self.notes = tuple(notes)

    def _use(self, loaded: dict[str, _Loaded], accounts: "Sequence[AccountTable]") -> None:
        self._pools = loaded
        self._accounts.set(accounts)
        self.listed = KnownPools(
            tuple(loaded),
            {each.name: [one.name for one in each.accounts] for each in accounts},
            [each.name for each in accounts if any(one.user for one in each.accounts)],
        )

    def _loaded(self, sources: Iterable[Source], *, first: bool) -> tuple[dict[str, _Loaded], list[str]]:
        found: dict[str, _Loaded] = {}
        notes: list[str] = []
        for source in sources:
            name = source.table.name
            each = self._of_feed(source, first) if source.table.url else self._of_file(source)
            found[name] = each
            notes += [f"pool {name!r}: {note}" for note in each.members.notes]
        return found, notes

    def _of_file(self, source: Source) -> _Loaded:
        table = source.table
        try:
            if table.gateway is not None:
                members = pool_members.of_gateway(table.gateway, table.weight, table.info.region, self._digest)
            else:
                entries = source.lines.entries if source.lines is not None else ()
                members = pool_members.of_list(entries, table.weight, table.info.region, self._digest)
            members = pool_members.trusting(members, source.ca_file)
        except SettingsError as error:
            raise SettingsError(f"pool {table.name!r}: {error.what}", hint=error.hint) from None
        return self._versioned(source, pool_members.weighted(members, source.weights), source.changed_at)

    def _of_feed(self, source: Source, first: bool) -> _Loaded:
        known = self._pools.get(source.table.name)
        feed = known.feed if known is not None else None
        if known is not None and feed is not None and feed.url == source.table.url.strip():
            # Other keys of the table may have changed; the list is the one that was read last.
            entries = known.source.lines.entries if known.source.lines is not None else []
            kept = msgspec.structs.replace(source, lines=proxy_lines.ProxyLines(entries=entries))
            if entries:
                return msgspec.structs.replace(self._of_file(kept), feed=feed)
            return _Loaded(source=source, pool=_pending(source.table), members=NOTHING, feed=feed)
        feed = self._feed(source.table)
        if not first:
            return _Loaded(source=source, pool=_pending(source.table), members=NOTHING, feed=feed)
        result = feed.first()
        return self._from_feed(source, feed, result.text, result.failure, None)

    def _feed(self, table: PoolTable) -> ListFeed:
        try:
            return ListFeed(
                table.url,
                clock=self._clock,
                allow_private=self._allow_private,
                allow=self._allow,
                every=self._every,
            )
        except ValueError as error:
            raise SettingsError(f"pools.{table.name}: url: {error}", hint="See docs/reference/proxies.md.") from None

    def _from_feed(self, source: Source, feed: ListFeed, text: str, failure: str, known: _Loaded | None) -> _Loaded:
        """With the new list; with the last good one if that cannot be used."""
        name = source.table.name
        lines = proxy_lines.listed_elsewhere(proxy_lines.read(text, source.table.mode, source.table.login))
        if not failure and not lines.entries:
            failure = lines.complaint() or "it is empty"
        if not failure:
            try:
                fresh = msgspec.structs.replace(source, lines=lines, changed_at=self._clock())
                loaded = msgspec.structs.replace(self._of_file(fresh), feed=feed)
            except SettingsError as error:
                failure = error.what
            else:
                self._calm(name)
                return loaded
        kept = len(known.members.members) if known is not None else 0
        self._complain(
            name, failure, f"; the last good list ({kept:,} proxies) stays in use" if kept else "", feed.host
        )
        return known or _Loaded(source=source, pool=_pending(source.table), members=NOTHING, feed=feed)

    def _versioned(self, source: Source, members: Members, changed_at: Moment) -> _Loaded:
        """With the old Pool if nothing of it has changed, so that it is not registered again."""
        table = source.table
        known = self._pools.get(table.name)
        before = known.pool if known is not None and not known.pending else None
        pool = versioned(table.name, table.rules, members.members, before, changed_at, self._clock())
        # The same tuple while they are the same: accounts keep their proxies by it.
        return _Loaded(source=source, pool=pool, members=msgspec.structs.replace(members, members=pool.members))

    def _complain(self, about: str, why: str, then: str = "", host: str = "") -> None:
        """Logged once, until it changes or is over."""
        if self._said.get(about) == why:
            return
        self._said[about] = why
        if not self._raises:
            place = f"pool {about!r}: its list at {host} cannot be used: " if about else ""
            log.warning("proxies.unreadable %s%s%s", place, why, then)

    def _calm(self, about: str) -> None:
        if self._said.pop(about, ""):
            log.warning("proxies.readable %s again", f"the list of pool {about!r} is" if about else "the file is")

    def _found(self, name: str) -> _Loaded | AccountPool:
        found = self._pools.get(name) or self._accounts.get(name)
        if found is None:
            raise SettingsError(pool_names.missing(name), hint=pool_names.hint(name, self.names))
        return found


def load(
    setting: str,
    *,
    allow_private: bool = False,
    allow: Collection[str] = (),
    patient: bool = False,
    clock: Callable[[], Moment] = time.time,
    every: Seconds = EVERY,
    digest: Digest = digest,
) -> PoolBook:
    """The pools of a .toml or of a plain list (`config/pool_sources.py`); an empty setting: a book without pools.

    SettingsError says what is wrong with the file. `allow_private` and `allow` are for lists over HTTP.
    """
    files = Files(setting) if setting else None
    book = PoolBook(files, clock=clock, allow_private=allow_private, allow=allow, every=every, digest=digest)
    book.read(patient=patient)
    return book


def _pending(table: PoolTable) -> Pool:
    return Pool(name=table.name, version=0.0, rules=table.rules)

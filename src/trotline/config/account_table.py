"""One table `[accounts.NAME]` of a proxies file, with types. Wrong values are refused, and never quoted.

docs/reference/proxies.md explains each key.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from trotline.config import toml_values
from trotline.config.pool_table import PoolTable
from trotline.errors import SettingsError
from trotline.model.account import Account
from trotline.model.proxy import ApiGateway
from trotline.model.proxy_pool import ACCOUNT, ACCOUNTS, NO_PROXY, PoolRules, account_id
from trotline.model.secret import Secret, SecretMissing, is_reference
from trotline.model.time import Moment, Seconds
from trotline.rules.pool_names import ACCOUNT_NAME, NAME, listed

MOST_ACCOUNTS = 100_000
"""Of one pool. The text of every password is kept in all its forms, to redact output."""
MOST_USES = 10**9
TIMEOUT: Seconds = 60.0
KEYS = ("proxies", "uses", "pace", "rate", "rest", "longest_rest", "timeout", "logins", "slots")
_MEMBERS = ("logins", "slots")
_SECRET_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MEANT_USER = ("username", "user_name", "login", "name", "usr")
_WINDOWS = {"m": 60.0, "h": 3600.0, "d": 86400.0}
_USES = re.compile(r"\s*([1-9]\d{0,9})\s*/\s*([mhd])\s*")
_HINT = "docs/reference/proxies.md has every key."
_LOGIN = 'anna = { password = "env:ANNA_PASSWORD" }'


class AccountTable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """`@buyers`"""
    proxies: str
    """A proxy pool of the same file, or `direct`."""
    rules: PoolRules
    accounts: tuple[Account, ...]
    has_logins: bool = False
    """A password is written in the file itself."""
    where: str = ""
    changed_at: Moment = 0.0
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"AccountTable({self.name})"


def read_all(
    place: str, tables: Mapping[str, object], pools: Mapping[str, PoolTable], changed_at: Moment
) -> list[AccountTable]:
    """SettingsError names file, pool and key, and what is allowed. `pools`: the proxy pools of the file, by name."""
    found = [read(place, name, table, pools) for name, table in tables.items()]
    return [msgspec.structs.replace(table, where=place, changed_at=changed_at) for table in found]


def read(place: str, name: str, table: object, pools: Mapping[str, PoolTable]) -> AccountTable:
    if not NAME.fullmatch(name):
        raise SettingsError(
            f"{place}: {name[:80]!r} cannot be the name of an account pool",
            hint=f"A name has 1 to 64 letters, digits, - or _. Tasks name it with {ACCOUNTS}: {ACCOUNTS}buyers.",
        )
    if not isinstance(table, Mapping):
        raise SettingsError(
            f"{place}: accounts.{name} is not a table", hint=f"Write [accounts.{name}] and its keys below."
        )
    return _Reader(f"{place}: accounts.{name}", f"{ACCOUNTS}{name}", table, pools).read()


def secret_files(tables: Mapping[str, object]) -> Iterator[Path]:
    """The files that secrets of accounts are read from: when one changes, the accounts are read again."""
    for table in tables.values():
        logins = table.get("logins") if isinstance(table, Mapping) else None
        for login in logins.values() if isinstance(logins, Mapping) else ():
            for value in login.values() if isinstance(login, Mapping) else ():
                if is_reference(value) and value.startswith("file:"):
                    yield Path(value.removeprefix("file:"))


class _Reader:
    def __init__(self, place: str, name: str, table: Mapping[str, Any], pools: Mapping[str, PoolTable]) -> None:
        self._place = place
        self._name = name
        self._table = table
        self._pools = pools
        self._has_logins = False

    def read(self) -> AccountTable:
        self._refuse_unknown()
        proxies = self._proxies()
        accounts = self._accounts(proxies)
        self._refuse_duplicates(accounts)
        return AccountTable(
            name=self._name,
            proxies=proxies,
            rules=self._rules(self._pools.get(proxies)),
            accounts=accounts,
            has_logins=self._has_logins,
            notes=self._notes(self._pools.get(proxies)),
        )

    def refuse(self, what: str, hint: str = _HINT) -> SettingsError:
        return SettingsError(f"{self._place}: {what}", hint=hint)

    def _refuse_unknown(self) -> None:
        for key in self._table:
            if key == "concurrency":
                raise self.refuse(
                    "concurrency has no effect: an account makes one visit at a time", "Leave it out; add accounts."
                )
            if key not in KEYS:
                near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(KEYS)}."
                raise self.refuse(f"unknown key {key[:80]!r}", hint)
        given = [key for key in _MEMBERS if key in self._table]
        if len(given) != 1:
            what = "logins and slots are given" if given else "it has no accounts"
            raise self.refuse(
                what,
                f"Give one: [accounts.{self._name[1:]}.logins] with {_LOGIN},"
                " or slots = 50 for sessions without a login.",
            )

    def _one(self, key: str, parse: Callable[[Any], Any], usual: Any) -> Any:
        if key not in self._table:
            return usual
        try:
            return parse(self._table[key])
        except ValueError as error:
            # Not "from": a cause may quote a password.
            raise self.refuse(f"{key}: {error}") from None

    def _proxies(self) -> str:
        known = f"Proxy pools of this file: {listed(self._pools)}." if self._pools else "This file has no proxy pool."
        hint = f'{known} Without a proxy: proxies = "{NO_PROXY}".'
        pool = self._one("proxies", toml_values.text, "")
        if not pool:
            raise self.refuse("it does not say through which proxies its accounts go out (proxies)", hint)
        if pool == NO_PROXY:
            return NO_PROXY
        if pool not in self._pools:
            raise self.refuse("proxies: there is no such proxy pool in this file", hint)
        gateway = self._pools[pool].gateway
        if gateway is not None and isinstance(gateway.way, ApiGateway):
            raise self.refuse(
                f"proxies: pool {pool!r} is an API gateway, and cannot keep a session of an account", hint
            )
        return str(pool)

    def _rules(self, proxies: PoolTable | None) -> PoolRules:
        usual = PoolRules()
        rest = self._one("rest", toml_values.time, usual.rest)
        longest = self._one("longest_rest", toml_values.time, max(usual.longest_rest, rest))
        if longest < rest:
            raise self.refuse("longest_rest is shorter than rest", "Leave it out, or raise it.")
        own = proxies.gateway.way.total if proxies is not None and proxies.gateway is not None else None
        timeout = self._one("timeout", toml_values.time, max(TIMEOUT, own or 0.0))
        if own is not None and timeout < own:
            raise self.refuse(
                "timeout is shorter than that of its proxy pool: a request may still run", "Leave it out, or raise it."
            )
        uses, window = self._one("uses", _uses, (0, usual.uses_window))
        return PoolRules(
            rest=rest,
            longest_rest=longest,
            interval=self._one("pace", toml_values.interval, 0.0),
            member_interval=self._one("rate", toml_values.interval, 0.0),
            member_concurrency=1,
            member_uses=uses,
            uses_window=window,
            rest_of_dead=timeout,
            # To try a rejected login again soon may lock the account.
            probe=0.0,
        )

    def _notes(self, proxies: PoolTable | None) -> tuple[str, ...]:
        gateway = proxies.gateway if proxies is not None else None
        if gateway is None or isinstance(gateway.way, ApiGateway) or not gateway.way.one_request_per_tunnel:
            return ()
        return (
            f"accounts {self._name}: their proxy pool changes the exit address with each request;"
            " add {session} to its user, so that an account keeps one",
        )

    def _accounts(self, proxies: str) -> tuple[Account, ...]:
        if "slots" in self._table:
            slots = self._one("slots", toml_values.whole(1, MOST_ACCOUNTS), 1)
            nothing = Secret("")
            return tuple(
                Account(pool=self._name, name=str(number), user="", password=nothing, proxies=proxies)
                for number in range(1, slots + 1)
            )
        logins = self._table["logins"]
        if not isinstance(logins, Mapping) or not logins:
            raise self.refuse("logins is not a table with a line for each account", f"Write {_LOGIN}")
        if len(logins) > MOST_ACCOUNTS:
            raise self.refuse(
                f"{len(logins):,} logins", f"At most {MOST_ACCOUNTS:,} are possible; make several account pools."
            )
        return tuple(self._account(name, login, proxies) for name, login in logins.items())

    def _account(self, name: str, login: object, proxies: str) -> Account:
        if not ACCOUNT_NAME.fullmatch(name):
            raise self.refuse(
                f"logins: {name[:80]!r} cannot be the name of an account",
                "A name has 1 to 64 letters, digits or . _ + -; give the user of the site separately: user = ...",
            )
        if not isinstance(login, Mapping):
            raise self.refuse(f"logins.{name} is not a table", f"Write {_LOGIN}")
        for key in login:
            self._refuse_key(name, key)
        if "password" not in login:
            raise self.refuse(f"logins.{name} has no password", f"Write {_LOGIN}")
        user = self._secret(name, "user", login["user"], counts=False) if "user" in login else name
        secrets = {key: Secret(self._secret(name, key, value)) for key, value in login.items() if key != "user"}
        password = secrets.pop("password")
        return Account(pool=self._name, name=name, user=user, password=password, secrets=secrets, proxies=proxies)

    def _refuse_key(self, name: str, key: str) -> None:
        if key in _MEANT_USER:
            raise self.refuse(f"logins.{name}: unknown key {key!r}", "Did you mean 'user'?")
        if not _SECRET_KEY.fullmatch(key):
            raise self.refuse(
                f"logins.{name}: {key[:80]!r} cannot be the name of a secret",
                "It has 1 to 64 lower-case letters, digits or _: totp.",
            )

    def _secret(self, name: str, key: str, value: Any, *, counts: bool = True) -> str:
        """The value, or what `env:NAME` or `file:PATH` refers to. `counts`: others must not read it."""
        try:
            text = toml_values.text(value)
            if is_reference(text):
                return Secret.parse(text).reveal()
        except (SecretMissing, ValueError) as error:
            raise self.refuse(f"logins.{name}: {key}: {error}") from None
        self._has_logins = self._has_logins or counts
        return text

    def _refuse_duplicates(self, accounts: tuple[Account, ...]) -> None:
        """One account under two names would be used twice at the same time."""
        users: dict[str, str] = {}
        ids: dict[int, str] = {}
        for account in accounts:
            if account.user and (other := users.setdefault(account.user, account.name)) != account.name:
                raise self.refuse(
                    f"logins.{other} and logins.{account.name} have the same user", "Remove one: it is one account."
                )
            number = account_id(f"{self._name}{ACCOUNT}{account.name}")
            if (other := ids.setdefault(number, account.name)) != account.name:
                raise self.refuse(
                    f"logins.{other} and logins.{account.name} have the same id", "Give one of them another name."
                )


def _uses(value: Any) -> tuple[int, Seconds]:
    match = _USES.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[1]) > MOST_USES:
        raise ValueError('must be a number of visits in a time: "500/d", "20/h" or "5/m"')
    return int(match[1]), _WINDOWS[match[2]]

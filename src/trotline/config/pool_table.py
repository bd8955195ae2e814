"""One table `[pools.NAME]` of a proxies file, with types. Wrong values are refused.

docs/reference/proxies.md explains each key.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from trotline.config import proxy_lines, toml_values
from trotline.config.proxy_lines import Login
from trotline.errors import SettingsError
from trotline.model.proxy import GATEWAY_TOTAL, ApiGateway, Proxy, ProxyMode
from trotline.model.proxy_pool import NO_PROXY, PoolRules
from trotline.model.secret import Secret, SecretMissing, is_reference
from trotline.rules import proxy_logins
from trotline.rules.pool_names import NAME

MOST_SLOTS = 10_000
MOST_AT_ONCE = 10_000
MOST_HOLD = 63
"""The ring of a lane counts the visits of a hold in 6 bits."""
SOURCES = ("list", "proxies", "url", "endpoint")
SLOTS = 10
MINUTES = 10


class PoolKind(StrEnum):
    DATACENTER = "datacenter"
    RESIDENTIAL = "residential"
    MOBILE = "mobile"
    ISP = "isp"
    GATEWAY = "gateway"


HOLD = {PoolKind.DATACENTER: 1, PoolKind.RESIDENTIAL: 20, PoolKind.MOBILE: 20, PoolKind.ISP: 5, PoolKind.GATEWAY: 20}
"""Visits in a row through one member, by the kind of the pool."""


class PoolInfo(msgspec.Struct, frozen=True, kw_only=True):
    """For people and reports."""

    kind: PoolKind = PoolKind.DATACENTER
    provider: str = ""
    region: str = ""
    cost_per_gb: float = 0.0
    cost_per_request: float = 0.0


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """Members are session slots behind one endpoint."""

    way: Proxy | ApiGateway
    """Without a session: user and password of a proxy are templates."""
    template: proxy_logins.LoginTemplate | None = None
    """How the provider wants session and country; None: as the templates in user and password say."""
    slots: int = SLOTS
    country: str = ""
    minutes: int = MINUTES


class PoolTable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    info: PoolInfo = PoolInfo()
    rules: PoolRules = PoolRules()
    weight: float = 1.0
    mode: ProxyMode = ProxyMode.ADDRESS
    ca: str = ""
    """A PEM file, relative to the one that names it: the authority of https proxies."""
    login: Login = Login()
    list: str = ""
    """A file, relative to the one that names it."""
    proxies: tuple[str, ...] = ()
    """As lines of a list. May contain logins."""
    url: str = ""
    """A list that is read over HTTP. May contain a token."""
    gateway: Gateway | None = None
    has_logins: bool = False
    """A user or password is written in the file itself."""

    def __repr__(self) -> str:
        return f"PoolTable({self.name})"


def secret_files(tables: Mapping[str, object]) -> Iterator[Path]:
    """The files that secrets of pools are read from: when one changes, the pools are read again."""
    for table in tables.values():
        for value in table.values() if isinstance(table, Mapping) else ():
            for text in value if isinstance(value, list) else [value]:
                if is_reference(text) and text.startswith("file:"):
                    yield Path(text.removeprefix("file:"))


def read(place: str, name: str, table: object) -> PoolTable:
    """SettingsError names file, pool and key, and what is allowed."""
    if name == NO_PROXY:
        raise SettingsError(
            f"{place}: {NO_PROXY!r} cannot be the name of a pool: it means no proxy", hint="Give the pool another name."
        )
    if not NAME.fullmatch(name):
        raise SettingsError(
            f"{place}: {name[:80]!r} cannot be the name of a pool", hint="A name has 1 to 64 letters, digits, - or _."
        )
    if not isinstance(table, Mapping):
        raise SettingsError(f"{place}: pools.{name} is not a table", hint=f"Write [pools.{name}] and its keys below.")
    return _Reader(f"{place}: pools.{name}", name, table).read()


class _Reader:
    def __init__(self, place: str, name: str, table: Mapping[str, Any]) -> None:
        self._place = place
        self._name = name
        self._table = table
        self._has_logins = False

    def read(self) -> PoolTable:
        self._refuse_unknown()
        source = self._source()
        kind = self._one(
            "kind", toml_values.one_of(PoolKind), PoolKind.GATEWAY if source == "endpoint" else PoolKind.DATACENTER
        )
        gateway = self._gateway() if source == "endpoint" else None
        login = Login() if gateway is not None else self._login()
        return PoolTable(
            name=self._name,
            info=PoolInfo(
                kind=kind,
                provider=self._one("provider", toml_values.text, ""),
                region=self._one("region", proxy_lines.region, ""),
                cost_per_gb=self._one("cost_per_gb", toml_values.cost, 0.0),
                cost_per_request=self._one("cost_per_request", toml_values.cost, 0.0),
            ),
            rules=self._rules(kind),
            weight=self._one("weight", proxy_lines.weight, 1.0),
            mode=self._one("mode", toml_values.one_of(ProxyMode), ProxyMode.ADDRESS),
            ca=self._one("ca", toml_values.text, ""),
            login=login,
            list=self._one("list", toml_values.text, ""),
            proxies=self._one("proxies", self._proxies, ()),
            url=self._one("url", self._secret, ""),
            gateway=gateway,
            has_logins=self._has_logins,
        )

    def refuse(self, what: str, hint: str) -> SettingsError:
        return SettingsError(f"{self._place}: {what}", hint=hint)

    def _refuse_unknown(self) -> None:
        for key in self._table:
            if key not in KEYS:
                near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(KEYS)}."
                raise self.refuse(f"unknown key {key[:80]!r}", hint)

    def _source(self) -> str:
        given = [key for key in SOURCES if key in self._table]
        if len(given) != 1:
            what = f"{' and '.join(given)} are given" if given else "it has no proxies"
            raise self.refuse(what, f"Give one of {', '.join(SOURCES)}.")
        wrong = [key for key in self._table if key in _ONLY and given[0] not in _ONLY[key]]
        if wrong:
            raise self.refuse(
                f"{wrong[0]} has no effect with {given[0]}", f"It is for {' and '.join(_ONLY[wrong[0]])}."
            )
        return given[0]

    def _one(self, key: str, parse: Callable[[Any], Any], usual: Any) -> Any:
        if key not in self._table:
            return usual
        try:
            return parse(self._table[key])
        except ValueError as error:
            # Not "from": a cause may quote a password.
            raise self.refuse(f"{key}: {error}", "docs/reference/proxies.md has every key.") from None

    def _rules(self, kind: PoolKind) -> PoolRules:
        usual = PoolRules()
        rest = self._one("rest", toml_values.time, usual.rest)
        longest = self._one("longest_rest", toml_values.time, max(usual.longest_rest, rest))
        if longest < rest:
            raise self.refuse("longest_rest is shorter than rest", "Leave it out, or raise it.")
        return PoolRules(
            rest=rest,
            longest_rest=longest,
            hold=self._one("hold", toml_values.whole(0, MOST_HOLD), HOLD[kind]),
            interval=self._one("pace", toml_values.interval, 0.0),
            member_interval=self._one("rate", toml_values.interval, 0.0),
            member_concurrency=self._one("concurrency", toml_values.whole(1, MOST_AT_ONCE), 0),
        )

    def _login(self) -> Login:
        user, password = self._one("user", self._user, ""), self._one("password", self._secret, "")
        if password and not user:
            raise self.refuse("a password without a user", 'Give both: user = "...", password = "env:NAME".')
        return Login(user, password)

    def _user(self, value: Any) -> str:
        """No secret beside a password; alone it may be a key."""
        before = self._has_logins
        found = self._secret(value)
        self._has_logins = before or (self._has_logins and "password" not in self._table)
        return found

    def _secret(self, value: Any) -> str:
        """The value, or what `env:NAME` or `file:PATH` refers to."""
        text = toml_values.text(value)
        if not is_reference(text):
            self._has_logins = True
            return text
        try:
            return Secret.parse(text).reveal()
        except SecretMissing as error:
            raise ValueError(str(error)) from None

    def _proxies(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
            raise ValueError('must be a list of URLs: ["http://proxy.example:3128"]')
        return tuple(map(self._proxy_line, value))

    def _proxy_line(self, text: str) -> str:
        if is_reference(text):
            return self._secret(text)
        self._has_logins = self._has_logins or "@" in text
        return text

    def _gateway(self) -> Gateway:
        country = self._one("country", toml_values.word, self._one("region", proxy_lines.region, ""))
        if "key" in self._table or "parameter" in self._table:
            return Gateway(way=self._api(), slots=self._one("slots", toml_values.whole(1, MOST_SLOTS), SLOTS))
        template = self._provider_template()
        gateway = Gateway(
            way=self._endpoint(country, template),
            template=template,
            slots=self._one("slots", toml_values.whole(1, MOST_SLOTS), SLOTS),
            country=country,
            minutes=self._one("minutes", toml_values.whole(1, 7 * 1440), MINUTES),
        )
        if template is not None and template.longest_minutes:
            gateway = msgspec.structs.replace(gateway, minutes=min(gateway.minutes, template.longest_minutes))
        return gateway

    def _provider_template(self) -> proxy_logins.LoginTemplate | None:
        """Of a provider that we know, unless user or password is a template already."""
        if any("{" in str(self._table.get(key, "")) for key in ("user", "password", "endpoint")):
            return None
        return proxy_logins.PROVIDERS.get(str(self._table.get("provider", "")).lower().replace(" ", ""))

    def _endpoint(self, country: str, template: proxy_logins.LoginTemplate | None) -> Proxy:
        proxy: Proxy = self._one("endpoint", lambda text: Proxy.parse(self._endpoint_text(text)), None)
        user = self._one("user", self._user, proxy.user)
        password = self._one("password", self._secret, proxy.password)
        if template is not None:
            mode = self._one("mode", toml_values.one_of(ProxyMode), ProxyMode.ADDRESS)
            total = self._one("timeout", toml_values.time, None)
            return msgspec.structs.replace(proxy, user=user, password=password, mode=mode, total=total)
        try:
            places = proxy_logins.places(user) | proxy_logins.places(password)
        except ValueError as error:
            raise self.refuse(f"user or password has {error}", "docs/reference/proxies.md explains them.") from None
        if "country" in places and not country:
            raise self.refuse("{country} is used, and no country is given", 'Give one: country = "us".')
        if "session" not in places and "minutes" in self._table:
            raise self.refuse("minutes has no effect without {session}", "Leave it out, or add {session} to user.")
        return msgspec.structs.replace(
            proxy,
            user=user,
            password=password,
            mode=self._one("mode", toml_values.one_of(ProxyMode), ProxyMode.ADDRESS),
            one_request_per_tunnel="session" not in places,
            total=self._one("timeout", toml_values.time, None),
        )

    def _endpoint_text(self, value: Any) -> str:
        text = toml_values.text(value)
        self._has_logins = self._has_logins or "@" in text
        return text

    def _api(self) -> ApiGateway:
        for key in ("user", "password", "country", "minutes", "mode", "ca"):
            if key in self._table:
                raise self.refuse(f"{key} has no effect with an API gateway", "It takes endpoint, parameter and key.")
        return ApiGateway(
            endpoint=self._one("endpoint", toml_values.api_endpoint, ""),
            url_parameter=self._one("parameter", toml_values.word, "url"),
            key=Secret(self._one("key", self._secret, "")),
            key_parameter=self._one("key_parameter", toml_values.word, "api_key"),
            total=self._one("timeout", toml_values.time, GATEWAY_TOTAL),
        )


KEYS = (
    "kind", "provider", "region", "weight", "cost_per_gb", "cost_per_request", "pace", "rate", "concurrency", "rest",
    "longest_rest", "hold", "mode", "ca", "list", "proxies", "url", "user", "password", "endpoint", "slots", "country",
    "minutes", "timeout", "parameter", "key", "key_parameter",
)  # fmt: skip
_ONLY = dict.fromkeys(("slots", "country", "minutes", "timeout", "parameter", "key", "key_parameter"), ("endpoint",))
"""Key -> the sources with which it has an effect."""

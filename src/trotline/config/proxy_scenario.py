"""The file of `trotline proxies simulate`: a fleet, its proxies and a site.

docs/explain/proxy-policy.md explains every key.
"""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trotline.config import pool_files, toml_values
from trotline.errors import SettingsError
from trotline.model.pace import Rate
from trotline.model.proxy_pool import PoolRules
from trotline.model.time import Seconds, seconds
from trotline.rules import bounded_toml
from trotline.rules.proxy_simulation import Scenario
from trotline.rules.simulated_site import SiteModel

MOST_MINUTES = 24 * 60
MOST_WORKERS = 1_000
MOST_SLOTS = 1_000
MOST_PROXIES = 10_000
_HINT = "See docs/explain/proxy-policy.md for every key."
_FILE_HINT = "Give a .toml with [fleet], [pool] and [site] (docs/explain/proxy-policy.md), or none and a --preset."
_LONGEST: Seconds = 30 * 86400.0


def read(path: str) -> Scenario:
    """SettingsError says what is wrong with the file."""
    file = pool_files.read(Path(path), hint=_FILE_HINT)
    try:
        whole = bounded_toml.parse(file.text)
    except ValueError as error:
        raise SettingsError(f"{path} cannot be read: {error}", hint="Correct it (TOML).") from error
    return _Reader(path, whole).scenario()


class _Reader:
    def __init__(self, path: str, whole: Mapping[str, Any]) -> None:
        self._path = path
        self._whole = whole

    def scenario(self) -> Scenario:
        self._refuse_unknown("", self._whole, ("seed", "minutes", "fleet", "pool", "site"))
        fleet, pool, site = (self._part(name) for name in ("fleet", "pool", "site"))
        rate = pool("pace", _rate)
        rest = pool("rest", _time, PoolRules().rest)
        scenario = Scenario(
            seed=self._value("", self._whole, "seed", toml_values.whole(0, 2**63), 1),
            minutes=self._value("", self._whole, "minutes", toml_values.whole(1, MOST_MINUTES), 60),
            workers=fleet("workers", toml_values.whole(1, MOST_WORKERS)),
            slots=fleet("slots", toml_values.whole(1, MOST_SLOTS), 16),
            proxies=pool("proxies", toml_values.whole(1, MOST_PROXIES)),
            interval=rate.interval,
            dead=pool("dead", _share, 0.0),
            captive=pool("captive", _share, 0.0),
            rules=PoolRules(
                rest=rest,
                longest_rest=max(rest, PoolRules().longest_rest),
                hold=pool("hold", toml_values.whole(1, 63), 1),
            ),
            page_bytes=pool("page_bytes", toml_values.whole(0, 10**9), 30_000),
            refusal_bytes=pool("refusal_bytes", toml_values.whole(0, 10**9), 1_000),
            cost_per_gb=pool("cost_per_gb", _number(0, 1e6), 0.0),
            cost_per_request=pool("cost_per_request", _number(0, 1e6), 0.0),
            site=SiteModel(
                limit=60 * site("limit", _rate).per_second,
                burst=site("burst", _number(1, 1e6), 5.0),
                ban_after=site("ban_after", toml_values.whole(1, 10**6), 3),
                ban=site("ban", _time, 600.0),
                renewed=site("renewed", _flag, False),
                latency=site("latency", _time, 0.3),
                jitter=site("jitter", _time_or_none, 0.15),
            ),
        )
        if scenario.site.jitter >= scenario.site.latency:
            raise self._refused("site.jitter", "must be shorter than latency")
        if scenario.dead + scenario.captive > 1:
            raise self._refused("pool.dead + pool.captive", "must be at most 1")
        return scenario

    def _part(self, name: str) -> Callable[..., Any]:
        table = self._whole.get(name)
        if not isinstance(table, dict):
            raise self._refused(name, f"is missing; write a table [{name}]")
        self._refuse_unknown(f"{name}.", table, KEYS[name])

        def value(key: str, parse: Callable[[Any], Any], usual: Any = None) -> Any:
            return self._value(f"{name}.", table, key, parse, usual)

        return value

    def _value(
        self, place: str, table: Mapping[str, Any], key: str, parse: Callable[[Any], Any], usual: Any = None
    ) -> Any:
        if key not in table:
            if usual is None:
                raise self._refused(f"{place}{key}", "is missing")
            return usual
        try:
            return parse(table[key])
        except ValueError as error:
            raise self._refused(f"{place}{key}", str(error)) from error

    def _refuse_unknown(self, place: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
                raise SettingsError(f"{self._path}: unknown key {f'{place}{key}'[:80]!r}", hint=hint)

    def _refused(self, what: str, why: str) -> SettingsError:
        return SettingsError(f"{self._path}: {what} {why}", hint=_HINT)


KEYS = {
    "fleet": ("workers", "slots"),
    "pool": (
        "proxies", "pace", "rest", "hold", "dead", "captive", "page_bytes", "refusal_bytes", "cost_per_gb",
        "cost_per_request",
    ),
    "site": ("limit", "burst", "ban_after", "ban", "renewed", "latency", "jitter"),
}  # fmt: skip


def _number(least: float, most: float) -> Callable[[Any], float]:
    def parse(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"must be a number from {least:g} to {most:,g}")
        return float(value)

    return parse


_share = _number(0, 1)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _time_or_none(value: Any) -> Seconds:
    if not isinstance(value, str):
        raise ValueError('must be text like "0.3s" or "10m"')
    found = seconds(value)
    if found > _LONGEST:
        raise ValueError("must be at most 30 days")
    return found


def _time(value: Any) -> Seconds:
    if (found := _time_or_none(value)) <= 0:
        raise ValueError("must be above 0 s")
    return found


def _rate(value: Any) -> Rate:
    if not isinstance(value, str):
        raise ValueError('must be text like "1/s" or "40/m"')
    return Rate.parse(value)

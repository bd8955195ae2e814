"""The table `[alerts]` of the settings file: thresholds, and who gets the alerts.

A misspelt key is refused with a suggestion: an alert that never comes is noticed too late.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trotline.config import toml_values
from trotline.config.settings import file_table
from trotline.errors import SettingsError
from trotline.model.alert import Severity
from trotline.model.secret import Secret, SecretMissing, is_reference
from trotline.rules.alerts import RULES, AlertRules

MOST_RECEIVERS = 5
MOST_ADDRESSES = 20
SHORTEST_KEY = 16
"""Characters of the key that signs webhooks."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,24}")
_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}")
_KINDS = ("webhook", "slack", "mail")
_SEE = "See docs/how-to/alerts.md."


class ReceiverSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    """"webhook", "slack" or "mail"."""
    least: Severity = Severity.WARNING
    url: Secret | None = None
    key: Secret | None = None
    to: tuple[str, ...] = ()
    sender: str = ""
    server: str = ""
    user: str = ""
    password: Secret | None = None
    tls: bool = True


class AlertSettings(msgspec.Struct, frozen=True, kw_only=True):
    rules: AlertRules = AlertRules()
    receivers: tuple[ReceiverSettings, ...] = ()
    link: str = ""
    """The address of the dashboard."""


def read_alerts(folder: Path) -> AlertSettings:
    """SettingsError names the key, and quotes no value: it may be a misplaced secret."""
    table, place = file_table(folder)
    given = table.get("alerts", {})
    if not isinstance(given, dict):
        raise SettingsError(f"{place}: alerts is not a table", hint=f"Write [alerts], and its keys below. {_SEE}")
    where = f"[alerts] in {place}"
    _check_keys(given, (*_RULES, "receivers", "link"), where)
    rules = {key: _value(_RULES[key], value, key, where) for key, value in given.items() if key in _RULES}
    link = _value(_link, given["link"], "link", where) if "link" in given else ""
    return AlertSettings(
        rules=_consistent(AlertRules(**rules), where),
        receivers=_receivers(given.get("receivers", {}), where),
        link=link,
    )


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError("must be a share above 0 and at most 1, like 0.3")
    return float(value)


def _factor(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 1e6:
        raise ValueError("must be a factor of at least 1, like 1.2")
    return float(value)


def _off(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError('must be a list of rules, like ["queue"]')
    for name in value:
        if name not in RULES:
            near = difflib.get_close_matches(name, RULES, n=1, cutoff=0.4)
            raise ValueError(f"names no rule; {f'did you mean {near[0]!r}?' if near else ''} rules: {', '.join(RULES)}")
    return tuple(dict.fromkeys(value))


_COUNT = toml_values.whole(1, 10**9)
_RULES: dict[str, Callable[[Any], Any]] = {
    "off": _off,
    **dict.fromkeys(("queue_least", "errors_least", "blocks_least", "empty_pages", "coverage_records"), _COUNT),
    "stalled_clear": toml_values.whole(1, 100),
    "flaps": toml_values.whole(2, 10),
    **dict.fromkeys(("queue_growth", "queue_clear", "errors_times", "blocks_times"), _factor),
    **dict.fromkeys(("errors", "errors_clear", "blocks", "blocks_clear", "down", "down_clear"), _share),
    **dict.fromkeys(("coverage", "coverage_clear", "deadline_margin"), _share),
    **dict.fromkeys(("window", "stalled", "deadline_for", "proxies_for", "database", "database_for"), toml_values.time),
    **dict.fromkeys(("database_clear", "sink_for", "worker_for", "worker_clear", "group"), toml_values.time),
    **dict.fromkeys(("archive_for", "broker_for", "frontier_for"), toml_values.time),
    **dict.fromkeys(("lanes_for", "repeat", "flap_hold"), toml_values.time),
}
_ABOVE = (
    ("queue_growth", "queue_clear"),
    ("errors", "errors_clear"),
    ("blocks", "blocks_clear"),
    ("down", "down_clear"),
    ("database", "database_clear"),
    ("coverage", "coverage_clear"),
)
"""The first is the threshold of the alert, the second that of its end."""


def _consistent(rules: AlertRules, where: str) -> AlertRules:
    for fires, clears in _ABOVE:
        if getattr(rules, fires) < getattr(rules, clears):
            raise SettingsError(
                f"{where}: {clears} is above {fires}",
                hint=f"An alert would end as soon as it fires. Set both: {clears} below {fires}.",
            )
    if rules.window > 1500:
        # Points of two windows are needed, and an hour of them is kept.
        raise SettingsError(f"{where}: window is too long", hint="At most 25 minutes.")
    return rules


def _receivers(given: Any, where: str) -> tuple[ReceiverSettings, ...]:
    if not isinstance(given, dict) or not all(isinstance(table, dict) for table in given.values()):
        raise SettingsError(f"{where}: receivers are tables", hint=f"Write [alerts.receivers.ops]. {_SEE}")
    if len(given) > MOST_RECEIVERS:
        raise SettingsError(f"{where} has {len(given)} receivers", hint=f"There may be {MOST_RECEIVERS}.")
    return tuple(_receiver(name, table, f"[alerts.receivers.{name[:40]}]") for name, table in given.items())


def _receiver(name: str, table: dict[str, Any], where: str) -> ReceiverSettings:
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{where}: the name has other characters", hint="1 to 24 letters, digits, - and _.")
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        raise SettingsError(f"{where} needs one of: {', '.join(_KINDS)}", hint=_SEE)
    keys = _FIELDS[kinds[0]]
    _check_keys(table, keys, where)
    found = {_NAMES.get(key, key): _value(keys[key], value, key, where) for key, value in table.items() if key in keys}
    if kinds[0] == "mail":
        _check_mail(found, where)
    return ReceiverSettings(name=name, kind=kinds[0], **found)


def _check_mail(found: Mapping[str, Any], where: str) -> None:
    if missing := [key for key, name in (("server", "server"), ("from", "sender")) if not found.get(name)]:
        raise SettingsError(f"{where}: {missing[0]} is missing", hint=f"Set it beside mail. {_SEE}")
    if bool(found.get("user")) != bool(found.get("password")):
        raise SettingsError(f"{where}: user and password go together", hint="Set both, or none.")
    if found.get("tls") is False and (found.get("password") or found["server"].startswith("smtps:")):
        raise SettingsError(f"{where}: tls = false has no effect here", hint="It is for smtp:// without a password.")


def _url(value: Any) -> Secret:
    """Literally, or by reference; in both cases it is redacted everywhere."""
    text = value if not is_reference(value) else Secret.parse(value).reveal()
    try:
        parts = urlsplit(toml_values.text(text).strip())
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username and parts.port != 0
    except ValueError:
        right = False
    if not right:
        raise ValueError("must be an http or https URL without login, or env:NAME or file:PATH with one")
    return Secret(str(text).strip(), whence=str(value) if is_reference(value) else "")


def _secret_url(value: Any) -> Secret:
    if not is_reference(value):
        raise ValueError("is a secret: write it as env:NAME or file:PATH")
    return _url(value)


def _secret(value: Any) -> Secret:
    if not is_reference(value):
        raise ValueError("is a secret: write it as env:NAME or file:PATH")
    return Secret.parse(value)


def _key(value: Any) -> Secret:
    found = _secret(value)
    if len(found.reveal()) < SHORTEST_KEY:
        raise ValueError(f"must have {SHORTEST_KEY} characters or more")
    return found


def _addresses(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_ADDRESSES:
        raise ValueError(f"must be 1 to {MOST_ADDRESSES} mail addresses")
    return tuple(map(_address, given))


def _address(value: Any) -> str:
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise ValueError("must be a mail address, like ops@example.org")
    return value


def _server(value: Any) -> str:
    try:
        parts = urlsplit(toml_values.text(value))
        right = parts.scheme in ("smtp", "smtps") and bool(parts.hostname) and not parts.username and parts.port != 0
        right = right and not (parts.path.strip("/") or parts.query or parts.fragment)
    except ValueError:
        right = False
    if not right:
        raise ValueError("must be like smtps://mail.example or smtp://mail.example:587; user and password are keys")
    return str(value)


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _link(value: Any) -> str:
    text = toml_values.text(value)
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ValueError("must be the address of the dashboard, like https://trotline.example")
    return text.rstrip("/")


_SHARED = {"severity": toml_values.one_of(Severity)}
_FIELDS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "webhook": {"webhook": _url, "key": _key, **_SHARED},
    "slack": {"slack": _secret_url, **_SHARED},
    "mail": {
        "mail": _addresses,
        "server": _server,
        "from": _address,
        "user": toml_values.text,
        "password": _secret,
        "tls": _yes_or_no,
        **_SHARED,
    },
}
_NAMES = {"webhook": "url", "slack": "url", "mail": "to", "from": "sender", "severity": "least"}
"""Keys whose field has another name."""


def _check_keys(table: Mapping[str, Any], known: Any, where: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(known)}."
            raise SettingsError(f"{where}: unknown key {key[:40]!r}", hint=hint)


def _value(parse: Callable[[Any], Any], value: Any, key: str, where: str) -> Any:
    try:
        return parse(value)
    except SecretMissing as error:
        raise SettingsError(f"{where}: {key}: {error}", hint="Set it, or remove the receiver.") from error
    except ValueError as error:
        raise SettingsError(f"{where}: {key} {error}", hint=_SEE) from None

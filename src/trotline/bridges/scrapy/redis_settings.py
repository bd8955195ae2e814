"""The Redis server that a project of scrapy-redis names in its settings."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from scrapy.settings import BaseSettings

from trotline.errors import SettingsError
from trotline.rules.task_checks import shown

_SETTINGS = {"REDIS_URL": "url", "REDIS_HOST": "host", "REDIS_PORT": "port", "REDIS_DB": "db"}
"""As in scrapy-redis: each has precedence over the same parameter in REDIS_PARAMS."""
_PLACE = frozenset(("url", "host", "port", "db", "username", "password", "ssl"))
_OF_THE_CLIENT = frozenset(
    (
        "client_name", "decode_responses", "encoding", "encoding_errors", "health_check_interval", "max_connections",
        "protocol", "retry", "retry_on_error", "retry_on_timeout", "socket_connect_timeout", "socket_keepalive",
        "socket_keepalive_options", "socket_timeout",
    )
)  # fmt: skip
"""How its client talks to the server: ours has its own ways."""


def redis_server(settings: BaseSettings) -> str:
    """Where the keys of scrapy-redis are; empty: no setting says it. SettingsError: one cannot be followed."""
    given = {name: value for name, value in settings.getdict("REDIS_PARAMS").items() if value is not None}
    given |= {name: settings.get(setting) for setting, name in _SETTINGS.items() if settings.get(setting)}
    place = {name: value for name, value in given.items() if name in _PLACE}
    if "url" in given:
        server = _with_login(str(given["url"]), place)
    elif others := sorted(given.keys() - _PLACE - _OF_THE_CLIENT):
        raise SettingsError(
            f"the project sets REDIS_PARAMS[{others[0]!r}], which the Trotline add-on does not use",
            hint='Name the server in REDIS_URL = "redis://HOST:PORT/0", and remove it.',
        )
    else:
        server = _url(place) if place else str(settings.get("TROTLINE") or "")
    return server.partition("?")[0] if server.startswith(("redis://", "rediss://")) else ""


def _url(place: Mapping[str, Any]) -> str:
    scheme, host = "rediss" if place.get("ssl") else "redis", str(place.get("host") or "localhost")
    named = f"[{host}]" if ":" in host else host
    return f"{scheme}://{_login(place)}{named}:{_number(place, 'port', 6379)}/{_number(place, 'db', 0)}"


def _number(place: Mapping[str, Any], name: str, otherwise: int) -> int:
    try:
        return int(place.get(name) or otherwise)
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"the {name} of the Redis server is {shown(place[name])}",
            hint=f"REDIS_{name.upper()} is an integer, as {otherwise}.",
        ) from error


def _with_login(url: str, place: Mapping[str, Any]) -> str:
    """What the URL says has precedence."""
    scheme, _, rest = url.partition("://")
    parts = urlsplit(url)
    if parts.path in ("", "/") and place.get("db"):
        rest = f"{rest.partition('?')[0].rstrip('/')}/{_number(place, 'db', 0)}"
    return f"{scheme}://{'' if '@' in parts.netloc else _login(place)}{rest}"


def _login(place: Mapping[str, Any]) -> str:
    user, password = (quote(str(place.get(name) or ""), safe="") for name in ("username", "password"))
    return f"{user}:{password}@" if user or password else ""

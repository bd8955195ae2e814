"""Parses the URL of a PostgreSQL sink: the server, and our options.

postgresql://shop@db.example/scrapes?password=env:SHOP_DB&schema=shop&freshness=6h&visits=week&keep=90d
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

from trotline.errors import SettingsError
from trotline.model.secret import Secret, SecretMissing, is_reference
from trotline.model.time import Seconds, seconds
from trotline.rules import redaction

DAY, WEEK, MONTH = "day", "week", "month"
UNITS = (DAY, WEEK, MONTH)
DROP, DETACH, PARQUET = "drop", "detach", "parquet"
_OF_THE_SERVER = (
    "application_name", "channel_binding", "gssencmode", "host", "krbsrvname", "passfile", "port", "service",
    "sslcert", "sslcrl", "sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert",
    "ssl_min_protocol_version", "ssl_max_protocol_version", "target_session_attrs", "user", "dbname",
)  # fmt: skip
"""Parameters of every PostgreSQL client; passed on unchanged."""
_FORM = "Use the form postgresql://USER@HOST:PORT/DATABASE?schema=shop"
_VALID = {
    "schema": "NAME, at most 63 bytes, not pg_...",
    "pool": "4, an integer from 1 to 20",
    "timeout": "30s, a length of time above 0",
    "patience": "4s, a length of time above 0",
    "freshness": "6h, a length of time",
    "window": "6h, a length of time",
    "visits": "day, week or month",
    "history": "day, week or month",
    "keep": "90d, a day at least",
    "keep_history": "90d, a day at least",
    "retire": "drop, detach or parquet",
    "parquet": "file:/FOLDER or s3://BUCKET/PREFIX",
    "prepare": "yes or no",
}
"""What to write instead of an invalid value, of the sink and of the frontier."""
_LONGEST_NAME = 63
_LAST_PORT = 65_535
_SHORTEST_RETENTION: Seconds = 86_400.0


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed URL. `public` is safe for messages."""

    dsn: str
    """Without the password and our own options."""
    public: str
    password: Secret | None = None
    schema: str = "trotline"
    freshness: Seconds = 0.0
    """An unchanged record that is seen again within this time does not update its row."""
    window: Seconds = 0.0
    """A record that is seen again within this time is not stored at all, changed or not."""
    visits: str = MONTH
    """The period of a partition of the ledger."""
    keep: Seconds = 0.0
    """Retention of the ledger; 0: for ever."""
    history: str = MONTH
    """The period of a partition of the history."""
    keep_history: Seconds = 0.0
    """Retention of the history; 0: for ever."""
    retire: str = DROP
    """What happens to partitions beyond `keep`: "drop" deletes them, "detach" keeps them as separate tables, "parquet"
    writes them to a file in `parquet` before it deletes them."""
    parquet: str = ""
    """The place for these files: a folder, or a URL (`s3://BUCKET/PREFIX`)."""
    pool: int = 1
    """Connections of one process."""
    timeout: Seconds = 30.0
    """Of one statement."""
    patience: Seconds = 4.0
    """How long to wait while the server starts or has no free connection. Workers try again afterwards; people should
    see soon what is wrong."""
    prepare: bool | None = False
    """May statements be prepared? None: if the connection leads to a server, and not to a pooler: pgbouncer knows them
    only since 1.21."""

    @property
    def quoted(self) -> str:
        """The schema as SQL writes it."""
        return '"' + self.schema.replace('"', '""') + '"'


def parse(
    url: str,
    *,
    of: str = "sink",
    options: Mapping[str, Callable[[str], Any]] | None = None,
    usual: Mapping[str, Any] | None = None,
) -> Address:
    """Raises SettingsError, without the password in its text.

    `of`: what is at the URL, for messages; `options`: those that it has; `usual`: their defaults.
    """
    public = redaction.place(url).split("?")[0]
    try:
        parts = urlsplit(url)
        if "@" in parts.path + parts.fragment:
            raise ValueError("a /, # or ? in a password is written as %2F, %23 or %3F; or write password=env:NAME")
        given = _query(parts.query)
        options = _OPTIONS if options is None else options
        return _address(parts.netloc, parts.path, given, public, of, options, usual or {})
    except SecretMissing as error:
        raise SettingsError(
            f"the {of} {public}: {error}", hint="Set it, or write password=env:NAME or password=file:PATH."
        ) from error
    except ValueError as error:
        raise SettingsError(f"the {of} {public}: {error}", hint=getattr(error, "hint", _FORM)) from error


def _query(text: str) -> dict[str, str]:
    try:
        given = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    except ValueError:
        # Not "from": the cause quotes a part that may be the password.
        raise ValueError("the part after the ? must be name=value&name=value") from None
    found = dict(given)
    if len(found) < len(given):
        raise ValueError("an option is given twice after the ?; remove one of them")
    return found


def _address(
    netloc: str,
    path: str,
    given: dict[str, str],
    public: str,
    of: str,
    options: Mapping[str, Callable[[str], Any]],
    usual: Mapping[str, Any],
) -> Address:
    user_info, _, hosts = netloc.rpartition("@")
    for host in hosts.split(","):
        _check_port(host.rpartition("]")[2].partition(":")[2])
    _check_port(given.get("port", ""))
    user, _, in_url = user_info.partition(":")
    _check_once(given, host=hosts.rpartition(":")[0] or hosts, user=user, dbname=path.strip("/"))
    password = _password(given.pop("password", "") or unquote(in_url))
    own = {**usual, **{name: _value(options, name, value) for name, value in given.items() if name in options}}
    handed_on = {name: value for name, value in given.items() if name not in options}
    for name in handed_on:
        if name not in _OF_THE_SERVER:
            raise ValueError(f"{name!r} is not an option of this {of}; {_suggestion(name, options)}")
    _check_retention(own)
    at = f"{user}@" if user else ""
    query = f"?{urlencode(handed_on, safe='/', quote_via=quote)}" if handed_on else ""
    return Address(dsn=f"postgresql://{at}{hosts}{path}{query}", public=public, password=password, **own)


class _WrongOption(ValueError):
    """The value of an option is not valid; `hint` says what is."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def _value(options: Mapping[str, Callable[[str], Any]], name: str, text: str) -> Any:
    try:
        return options[name](text)
    except ValueError as error:
        raise _WrongOption(str(error), f"Write {name}={_VALID.get(name, 'VALUE')}.") from error


def _check_once(given: Mapping[str, str], **in_url: str) -> None:
    """The client would ignore the second one."""
    for name, value in in_url.items():
        if value and given.get(name, value) != value:
            raise ValueError(f"{name} is given twice, before and after the ?; remove one of them")


def _check_retention(own: Mapping[str, Any]) -> None:
    """An option without effect is refused."""
    if own.get("freshness") and own.get("window"):
        raise ValueError("freshness= and window= are two rules for the same records; give one of them")
    if (own.get("retire") == PARQUET) != bool(own.get("parquet")):
        raise ValueError("retire=parquet and parquet=PLACE belong together; one of them is missing")
    if own.get("retire") and not (own.get("keep") or own.get("keep_history")):
        raise ValueError("retire= has no effect without keep= or keep_history=: nothing expires")


def _password(text: str) -> Secret | None:
    if not text:
        return None
    return Secret.parse(text) if is_reference(text) else Secret(text)


def _check_port(text: str) -> None:
    for port in text.split(","):
        if port and not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= _LAST_PORT):
            raise ValueError(f"port {port[:40]!r} must be an integer from 1 to {_LAST_PORT:,}")


def _suggestion(name: str, options: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, [*options, *_OF_THE_SERVER], n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(options)}, password and the server's own"


def _schema(text: str) -> str:
    if not text or not text.isprintable() or len(text.encode()) > _LONGEST_NAME or text.lower().startswith("pg_"):
        raise ValueError(f"schema={text!r} is not a valid schema name")
    return text


def _length(text: str) -> Seconds:
    if text == "0":
        return 0.0
    return seconds(text)


def _retention(text: str) -> Seconds:
    """Partitions are days at least. `keep=90` would be seconds, and everything but today would go."""
    found = _length(text)
    if not found:
        raise ValueError(f"{text!r} would keep nothing; leave the option out to keep everything")
    if 0 < found < _SHORTEST_RETENTION:
        raise ValueError(f"{text!r} is {found:,.0f} s, and a day is the shortest that is kept; write it like 90d")
    return found


def _some_time(text: str) -> Seconds:
    found = seconds(text)
    if not found:
        raise ValueError(f"{text!r} must be longer than 0 s")
    return found


def _one_of(*known: str) -> Callable[[str], str]:
    def parse_one(text: str) -> str:
        if text not in known:
            raise ValueError(f"{text!r} must be one of {', '.join(known)}")
        return text

    return parse_one


def _place(text: str) -> str:
    scheme, _, path = text.partition(":")
    if scheme == "s3" and re.fullmatch(r"//[^/@]+(/[^@]*)?", path):
        return text
    if scheme != "file" or not path.startswith("/"):
        raise ValueError(
            f"parquet={redaction.place(text[:80])!r} must be a folder of this machine, "
            "parquet=file:/var/lib/trotline/old, or parquet=s3://BUCKET/PREFIX"
        )
    return "/" + path.lstrip("/")


def _connections(text: str) -> int:
    if re.fullmatch(r"[1-9]|1\d|20", text) is None:
        raise ValueError(f"pool={text!r} must be an integer from 1 to 20")
    return int(text)


OF_CONNECTIONS: dict[str, Callable[[str], Any]] = {
    "schema": _schema,
    "pool": _connections,
    "timeout": _some_time,
    "patience": _some_time,
}
_OPTIONS: dict[str, Callable[[str], Any]] = {
    **OF_CONNECTIONS,
    "freshness": _length,
    "window": _length,
    "visits": _one_of(*UNITS),
    "keep": _retention,
    "history": _one_of(*UNITS),
    "keep_history": _retention,
    "retire": _one_of(DROP, DETACH, PARQUET),
    "parquet": _place,
}

"""Text becomes types at the door, once: flags, then environment, then a settings file, then defaults.

flags          trotline run shop.py --slots 32
environment    TROTLINE_SLOTS=32
file           trotline.toml, or [tool.trotline] in pyproject.toml, in the working directory
defaults       the fields of Settings
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from trotline.config.backend_urls import NO_ARCHIVE, has_password
from trotline.config.setting_types import TYPES
from trotline.errors import SettingsError
from trotline.model.proxy import Proxy, ProxyMode
from trotline.model.secret import Secret, SecretMissing, is_reference
from trotline.model.time import Seconds
from trotline.worker.worker_settings import WorkerSettings

PREFIX = "TROTLINE_"
OTHER_VARIABLES = {"TROTLINE_DEBUG"}
"""Variables that are ours and no settings."""
PROXY_LIST = "PROXY_LIST"
"""The usual name of the variable with a file of proxies; TROTLINE_PROXIES has precedence."""
LARGEST_FILE = 1 << 17
"""Bytes of a settings file."""


class Settings(WorkerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a run: one object from the command line to the child process.
    docs/reference/settings.md explains each."""

    frontier: str = ""
    """Where the tasks live; empty: `sqlite:.trotline/SPIDER.frontier.db`."""
    sink: str = ""
    """Where records go; empty: `sqlite:SPIDER.db`."""
    archive: str = ""
    """Where raw responses go; empty: they are not kept. NO_ARCHIVE: that is meant, also where a job has kept them."""
    cache: bool = False
    """Answer from the archive what is in it."""
    inbox: str = ""
    """Where other programs leave tasks; empty: there is none."""
    processes: int = 1
    max_pages: int | None = None
    """Of the job, whichever worker visits them."""
    max_bytes: int | None = None
    max_time: Seconds | None = None
    """Of this command."""
    allow_private: bool = False
    """Private and loopback addresses may be visited."""
    allow: tuple[str, ...] = ()
    """Hosts and networks that may be visited although they are private."""
    proxy: Proxy | None = None
    """The way out."""
    bandwidth: float | None = None
    """Bytes per second that this machine can receive; None: what its network device says. For the advice only."""
    proxy_mode: ProxyMode = ProxyMode.ADDRESS
    """What the proxy receives about a target."""
    metrics: str = ""
    """The address of the metrics endpoint; empty: there is none."""
    log_format: str = "text"
    """Of standard error: text or json."""
    log_level: str = ""
    """Empty: warning, or info in a JSON log."""
    otel: str = ""
    """The OpenTelemetry collector for traces; empty: there is none."""
    otel_sample: float = 0.01
    """The share of visits that are traced."""

    @property
    def way_out(self) -> Proxy | None:
        """The proxy, with its mode."""
        return None if self.proxy is None else msgspec.structs.replace(self.proxy, mode=self.proxy_mode)

    @property
    def archive_place(self) -> str:
        """Empty: there is none."""
        return "" if self.archive == NO_ARCHIVE else self.archive

    @property
    def allow_options(self) -> tuple[str, ...]:
        """As they are typed."""
        if self.allow_private:
            return ("--allow-private",)
        return tuple(word for place in self.allow for word in ("--allow", place))

    def of(self, spider: str) -> Self:
        """With the places where this spider's tasks and records are."""
        return msgspec.structs.replace(
            self, frontier=self.frontier_of(spider), sink=self.sink_of(spider), archive=self.archive_of(spider)
        )

    def frontier_of(self, spider: str) -> str:
        return self.frontier or f"sqlite:.trotline/{file_name(spider)}.frontier.db"

    def sink_of(self, spider: str) -> str:
        return self.sink or f"sqlite:{file_name(spider)}.db"

    def archive_of(self, spider: str) -> str:
        """The cache of development needs no name."""
        return self.archive_place or (f"file:.trotline/{file_name(spider)}.cache" if self.cache else "")


NAMES = Settings.__struct_fields__
TABLES = ("alerts",)
"""Tables of the settings file, read by the commands that need them (`alert_settings`)."""


def file_name(spider: str) -> str:
    """The spider's name as a file's name: what no file system likes becomes an underscore."""
    return re.sub(r"[^\w.-]", "_", spider).lstrip(".") or "_"


def read(flags: Mapping[str, Any], environment: Mapping[str, str], folder: Path) -> Settings:
    """The settings of this run. `flags` that are None were not given."""
    found: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for source in (_from_file(folder), _from_environment(environment), _from_flags(flags)):
        for name, (value, place) in source.items():
            found[name], origin[name] = value, place
    if flags.get("otel_sample") is not None and "otel" not in found:
        raise SettingsError("--otel-sample has no effect without a collector", hint="Name it: --otel http://HOST:4318")
    return Settings(**{name: _typed(name, value, origin[name]) for name, value in found.items()})


def given(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """What is set for all commands, by its name: where."""
    return {
        name: place
        for source in (_from_file(folder), _from_environment(environment))
        for name, (_, place) in source.items()
    }


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Variables with our prefix that are not settings: not an error, but worth a warning."""
    ours = {_variable(name) for name in NAMES} | OTHER_VARIABLES
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in ours)


_Source = dict[str, tuple[Any, str]]
_OPTIONS = {"pools": "--pool", "regions": "--region"}
"""Settings whose option has another name, as it is given many times."""


def _from_flags(flags: Mapping[str, Any]) -> _Source:
    given = {name: (value, _OPTIONS.get(name, f"--{name.replace('_', '-')}")) for name, value in flags.items()}
    given = {name: source for name, source in given.items() if source[0] is not None}
    if "out" in given:
        # --out FILE is the short way to say --sink; an error names what was typed.
        given["sink"] = given.pop("out")
    for name in {"proxy", "frontier", "sink", "archive", "inbox", "otel"} & given.keys():
        value, option = given[name]
        if name == "proxy" and "@" in str(value) and not is_reference(value):
            raise _readable_by_all(option, "a user or password", f", or set {_variable(name)}")
        refuse_password(option, value, f", or set {_variable(name)}")
    return given


def refuse_password(option: str, value: Any, otherwise: str = "") -> None:
    """SettingsError if the URL of a server has a password in it: every user of a machine can list command lines."""
    if not is_reference(value) and has_password(str(value)):
        raise _readable_by_all(option, "a password", otherwise)


def _readable_by_all(option: str, what: str, otherwise: str) -> SettingsError:
    return SettingsError(
        f"{option} has {what} in it, which every user of this machine can read in the list of processes",
        hint=f"Write {option} env:NAME or {option} file:PATH{otherwise}.",
    )


def _from_environment(environment: Mapping[str, str]) -> _Source:
    for unknown in unknown_variables(environment):
        # A near miss is a typing error that would be ignored in silence; anything else may belong to another program.
        # Without the prefix, which would make all short names alike.
        if near := difflib.get_close_matches(unknown.removeprefix(PREFIX).lower(), NAMES, n=1, cutoff=0.75):
            raise SettingsError(
                f"environment variable {unknown} is not a setting",
                hint=f"Did you mean {_variable(near[0])}? Unset it otherwise.",
            )
    found: _Source = {
        n: (environment[_variable(n)], _variable(n)) for n in NAMES if environment.get(_variable(n), "") != ""
    }
    if environment.get(PROXY_LIST, "").strip():
        found.setdefault("proxies", (environment[PROXY_LIST], PROXY_LIST))
    return found


def _from_file(folder: Path) -> _Source:
    table, place = file_table(folder)
    for key in table:
        if key.replace("-", "_") not in NAMES and key not in TABLES:
            raise SettingsError(f"{place}: unknown setting {key!r}", hint=_suggestion(key))
    plain = {key: value for key, value in table.items() if key not in TABLES}
    return {key.replace("-", "_"): (value, f"{key} in {place}") for key, value in plain.items()}


def file_table(folder: Path) -> tuple[dict[str, Any], str]:
    """The settings file, and what messages call it; empty if there is none."""
    own, shared = folder / "trotline.toml", folder / "pyproject.toml"
    if own.is_file():
        table, place = _toml(own), own.name
    elif shared.is_file() and b"tool.trotline" in shared.read_bytes():
        tools = _toml(shared).get("tool", {})
        table = tools.get("trotline", {}) if isinstance(tools, dict) else {}
        place = f"[tool.trotline] in {shared.name}"
    else:
        return {}, ""
    if not isinstance(table, dict):
        raise SettingsError(f"{place} is not a table", hint="Write one setting a line: slots = 16")
    return table, place


def _toml(path: Path) -> dict[str, Any]:
    from trotline.rules import bounded_toml  # most runs have no file

    try:
        return bounded_toml.parse(_bytes(path).decode())
    except ValueError as error:
        # Not TOML, or not UTF-8.
        raise SettingsError(f"{path.name} cannot be read: {error}", hint="Correct it, or move it away.") from error


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise SettingsError(f"{path.name} cannot be read: {error}", hint="Correct it, or move it away.") from error
    if len(found) > LARGEST_FILE:
        raise SettingsError(
            f"{path.name} is larger than {LARGEST_FILE:,} bytes", hint="It cannot be a settings file: move it away."
        )
    return found


def _suggestion(key: str) -> str:
    near = difflib.get_close_matches(key.replace("-", "_"), (*NAMES, *TABLES), n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"Known settings: {', '.join(NAMES)}."


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _typed(name: str, value: Any, place: str) -> Any:
    if is_reference(value) and not _is_place(name, value):
        return _revealed(name, value, place)
    try:
        return TYPES[name](value)
    except ValueError as error:
        raise SettingsError(f"{place}: {error}", hint="See docs/reference/settings.md for every setting.") from error


def _is_place(name: str, value: str) -> bool:
    """A path that is read elsewhere, or a folder of this machine: no reference to another value."""
    return name == "proxies" or (name == "archive" and value.startswith("file:"))


def _revealed(name: str, reference: str, place: str) -> Any:
    """The value behind `env:NAME` or `file:PATH`. It may be a secret: no message quotes it."""
    try:
        secret = Secret.parse(reference)
    except SecretMissing as error:
        raise SettingsError(f"{place}: {error}", hint="Set it, or write the value itself.") from error
    try:
        return TYPES[name](secret.reveal())
    except ValueError:
        # Not "from": the cause quotes the value.
        raise SettingsError(
            f"{place}: the value of {reference} is not a valid {name}",
            hint="See docs/reference/settings.md for every setting.",
        ) from None

"""What the setting `proxies` names: a .toml with pools, or a plain list, which is the pool `default`.

The value is a path; `file:PATH` if only its owner may have access; `env:NAME` if the variable holds the list itself.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trotline.config import pool_files, pool_table, pool_weights, proxy_lines
from trotline.config.pool_files import FILE_HINT, ReadFile
from trotline.config.pool_table import PoolTable
from trotline.config.proxy_lines import ProxyLines
from trotline.errors import SettingsError
from trotline.model.secret import is_reference
from trotline.model.time import Moment
from trotline.rules import bounded_toml
from trotline.rules.pool_names import DEFAULT

if TYPE_CHECKING:
    from trotline.config.account_table import AccountTable

MOST_POOLS = 200
_KINDS = ("pools", "accounts")
_CA_HINT = "Give the PEM file of the authority that has signed the proxies' certificates, or leave it out."
_LIST_HINT = "The list of [pools.{}] is a file with one proxy a line; its path begins at the folder of the .toml."
_TABLE_HINT = "Write one table for each pool: [pools.datacenter], or [accounts.buyers]"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One pool as it was written, before its members are made."""

    table: PoolTable
    lines: ProxyLines | None = None
    """None: a gateway, or a list over HTTP."""
    where: str = ""
    """The file of its members."""
    ca_file: str = ""
    """The path of the table's `ca`."""
    weights: Mapping[int, float] = {}
    """Measured, by member."""
    changed_at: Moment = 0.0
    """Of the files; 0 if there is none."""

    def __repr__(self) -> str:
        return f"Source({self.table.name})"


class Sources(msgspec.Struct, kw_only=True):
    pools: list[Source] = []
    accounts: list["AccountTable"] = []
    files: list[ReadFile] = []
    notes: list[str] = []


class Files:
    """The files that a setting names; read anew by each `read`."""

    def __init__(self, setting: str) -> None:
        kind, _, place = setting.partition(":")
        self._variable = place if is_reference(setting) and kind == "env" else ""
        self._private = is_reference(setting) and kind == "file"
        self._path = Path(place if self._private else setting)
        self.signatures: dict[Path, pool_files.Signature] = {}
        """Of the last `read`, whether it succeeded or not."""

    def changed(self) -> bool:
        return any(pool_files.signature(path) != known for path, known in self.signatures.items())

    def read(self) -> Sources:
        """SettingsError if a file cannot be read, or is not a file of proxies."""
        if self._variable:
            return self._from_variable()
        self.signatures = {self._path: pool_files.signature(self._path)}
        found = Sources()
        main = self._read(self._path, found)
        if self._path.suffix == ".toml":
            self._tables(main, found)
        else:
            table = PoolTable(name=DEFAULT, list=str(self._path))
            found.pools.append(self._of_list(table, main, found))
        return found

    def _read(self, path: Path, found: Sources, hint: str = FILE_HINT) -> ReadFile:
        self.signatures.setdefault(path, pool_files.signature(path))
        file = pool_files.read(path, private=self._private and path == self._path, hint=hint)
        self.signatures[path] = file.signature
        found.files.append(file)
        return file

    def _tables(self, main: ReadFile, found: Sources) -> None:
        pools, accounts, weights_name = _written(main)
        # Before the secrets are read: one that changes meanwhile is read again.
        self.signatures |= {path: pool_files.signature(path) for path in pool_table.secret_files(pools)}
        tables = [pool_table.read(main.path.name, name, table) for name, table in pools.items()]
        if accounts:
            self._accounts(main, accounts, tables, found)
        if main.for_all_users and any(
            [table.has_logins for table in tables] + [each.has_logins for each in found.accounts]
        ):
            found.notes.append(_readable(main.path))
        for table in tables:
            if table.list:
                file = self._read(main.path.parent / table.list, found, _LIST_HINT.format(table.name))
                found.pools.append(self._of_list(table, file, found, main.changed_at))
            elif table.proxies:
                found.pools.append(_of_proxies(table, main))
            else:
                found.pools.append(Source(table=table, where=main.path.name, changed_at=main.changed_at))
        found.pools = [self._trusting(source, main.path, found) for source in found.pools]
        if weights_name:
            self._weigh(self._read(main.path.parent / weights_name, found, pool_weights.HINT), found)

    def _trusting(self, source: Source, main: Path, found: Sources) -> Source:
        """With the path of its CA file. That is watched too: a worker must not run with one that was removed."""
        if not source.table.ca:
            return source
        path = main.parent / source.table.ca
        place = f"{main.name}: pools.{source.table.name}: ca"
        try:
            self._read(path, found)
        except SettingsError as error:
            raise SettingsError(f"{place}: {error.what}", hint=_CA_HINT) from error
        import ssl

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        except (ssl.SSLError, OSError) as error:
            raise SettingsError(f"{place}: {path} has no certificate in PEM format", hint=_CA_HINT) from error
        return msgspec.structs.replace(source, ca_file=str(path.absolute()))

    def _weigh(self, file: ReadFile, found: Sources) -> None:
        weights = pool_weights.parse(file.path.name, file.text)
        if unknown := sorted(set(weights) - {source.table.name for source in found.pools}):
            named = ", ".join(map(repr, unknown[: proxy_lines.NAMED]))
            more = f" and {len(unknown) - proxy_lines.NAMED:,} more" if len(unknown) > proxy_lines.NAMED else ""
            found.notes.append(f"{file.path.name} has weights for unknown pools: {named}{more}")
        found.pools = [
            msgspec.structs.replace(
                source, weights=own, changed_at=max(source.changed_at, file.changed_at) if own else source.changed_at
            )
            for source in found.pools
            for own in (weights.get(source.table.name, {}),)
        ]

    def _accounts(self, main: ReadFile, accounts: dict[str, Any], tables: Sequence[PoolTable], found: Sources) -> None:
        from trotline.config import account_table

        # Before they are read, as those of pools.
        self.signatures |= {path: pool_files.signature(path) for path in account_table.secret_files(accounts)}
        by_name = {table.name: table for table in tables}
        found.accounts = account_table.read_all(main.path.name, accounts, by_name, main.changed_at)
        found.notes += [note for table in found.accounts for note in table.notes]

    def _of_list(self, table: PoolTable, file: ReadFile, found: Sources, changed_at: Moment = 0.0) -> Source:
        lines = proxy_lines.read(file.text, table.mode, table.login)
        if file.for_all_users and lines.has_logins:
            found.notes.append(_readable(file.path))
        return _used(
            Source(table=table, lines=lines, where=file.path.name, changed_at=max(file.changed_at, changed_at)),
            found,
        )

    def _from_variable(self) -> Sources:
        text = os.environ.get(self._variable, "")
        if not text.strip():
            raise SettingsError(
                f"environment variable {self._variable} is not set; the list of proxies is read from it",
                hint="Set it to one or more URLs, each on a line of its own or separated by commas.",
            )
        found = Sources()
        lines = proxy_lines.read(text.replace(",", "\n"))
        where = f"variable {self._variable}"
        found.pools.append(_used(Source(table=PoolTable(name=DEFAULT), lines=lines, where=where), found))
        return found


def _used(source: Source, found: Sources) -> Source:
    """Bad lines are named; SettingsError if no line can be used."""
    lines = source.lines or ProxyLines()
    complaint = lines.complaint()
    if not lines.entries:
        raise SettingsError(
            f"{source.where} has no proxy" + (f": {complaint}" if complaint else ""),
            hint="Write one proxy a line: http://host:port, or http://<user>:<password>@host:port",
        )
    if complaint:
        found.notes.append(f"{source.where}: {complaint}")
    return source


def _of_proxies(table: PoolTable, main: ReadFile) -> Source:
    """They are part of the .toml, so a bad one refuses it."""
    lines = proxy_lines.read_each(table.proxies, table.mode, table.login)
    if lines.bad or not lines.entries:
        number, why = lines.bad[0] if lines.bad else (1, "it is empty")
        raise SettingsError(
            f"{main.path.name}: pools.{table.name}: proxies, item {number}: {why}",
            hint='Write proxies = ["http://host:port"], or env:NAME for one with a login.',
        )
    return Source(table=table, lines=lines, where=main.path.name, changed_at=main.changed_at)


def _written(main: ReadFile) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The tables of proxy pools and of account pools, and the name of the file with weights, if there is one."""
    place = main.path.name
    try:
        whole = bounded_toml.parse(main.text)
    except ValueError as error:
        # Not "from": the cause holds the text of the file.
        raise SettingsError(f"{place} cannot be read: {error}", hint="Correct it (TOML).") from None
    if odd := [key for key in whole if key not in (*_KINDS, "weights")]:
        raise SettingsError(f"{place}: unknown key {odd[0][:80]!r}", hint=_TABLE_HINT)
    pools, accounts = (whole.get(kind, {}) for kind in _KINDS)
    if not isinstance(pools, dict) or not (pools or accounts):
        raise SettingsError(f"{place} has no pools", hint=_TABLE_HINT)
    if not isinstance(accounts, dict):
        raise SettingsError(f"{place}: accounts is not a table", hint="Write one for each pool: [accounts.buyers]")
    if (number := len(pools) + len(accounts)) > MOST_POOLS:
        raise SettingsError(f"{place} has {number:,} pools", hint=f"At most {MOST_POOLS} are possible.")
    weights = whole.get("weights", "")
    if "weights" in whole and (not isinstance(weights, str) or not weights.strip() or not weights.isprintable()):
        raise SettingsError(f"{place}: weights must be the name of a file", hint='weights = "weights.toml"')
    return pools, accounts, weights


def _readable(path: Path) -> str:
    return f"{path} has logins, and every user of this machine can read it; try: chmod 600 {path}"


__all__ = ["FILE_HINT", "Files", "Source", "Sources"]

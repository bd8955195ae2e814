"""The file of measured weights beside a proxies.toml: written by `trotline proxies bench`, read by workers.

    [pools.home]
    a1b2c3d4e5f6 = 0.35  # 192.0.2.10:3128

The hand-written file names it (`weights = "weights.toml"`) and is never written itself.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trotline.config import pool_files, proxy_lines
from trotline.errors import SettingsError
from trotline.rules import bounded_toml
from trotline.rules.pool_names import NAME

Weights = Mapping[str, Mapping[int, float]]
"""By pool and member."""

_DIGITS = 12
"""Hexadecimal, of a member's id."""
HINT = "Write a new one with: trotline proxies bench URL --write-weights FILE"
_HEAD = """\
# Weights of proxies: their shares of turns, measured by "trotline proxies bench". A weight in the proxies file is
# multiplied by the one here. Used if the proxies file has at its top:  weights = "{name}"
"""


def parse(place: str, text: str) -> Weights:
    """SettingsError says what is wrong and where."""
    try:
        whole = bounded_toml.parse(text)
    except ValueError as error:
        # Not "from": it may be another file, given by mistake, and the cause holds its text.
        raise SettingsError(f"{place} cannot be read: {error}", hint=HINT) from None
    pools = whole.get("pools", {})
    if set(whole) - {"pools"} or not isinstance(pools, dict):
        raise SettingsError(f"{place} is not a file of weights", hint=HINT)
    return {name: _table(place, name, table) for name, table in pools.items()}


def _table(place: str, name: str, table: Any) -> dict[int, float]:
    if not NAME.fullmatch(name) or not isinstance(table, dict):
        raise SettingsError(f"{place} is not a file of weights", hint=HINT)
    found = {}
    for key, value in table.items():
        # Neither is quoted: in a file that is given by mistake they may be a login.
        try:
            member = int(key, 16) if len(key) == _DIGITS and key.isalnum() else 0
        except ValueError:
            member = 0
        if not member:
            what = f"a key that is not the id of a proxy ({_DIGITS} hexadecimal digits)"
            raise SettingsError(f"{place}: pools.{name} has {what}", hint=HINT)
        try:
            found[member] = proxy_lines.weight(value if isinstance(value, int | float) else None)
        except ValueError:
            raise SettingsError(
                f"{place}: pools.{name}: the weight of {key} must be a number above 0, at most 1", hint=HINT
            ) from None
    return found


def existing(path: Path) -> Weights:
    """What a file that will be written has now; SettingsError if it is another file, which must not be lost."""
    if not path.exists():
        if not path.absolute().parent.is_dir():
            raise SettingsError(
                f"{path} cannot be written: its folder does not exist", hint="Make it, or name another."
            )
        return {}
    try:
        return parse(str(path), pool_files.read(path).text)
    except SettingsError as error:
        raise SettingsError(
            f"{error.what}; it is not overwritten", hint="Give another name: --write-weights weights.toml"
        ) from None


def save(path: Path, weights: Weights, public: Callable[[str, int], str]) -> None:
    """In one step: a reader sees the old file or the new one. Weights of other pools and proxies stay. `public`: the
    name of a member for people, or nothing."""
    known = existing(path)
    pools = {name: {**known.get(name, {}), **weights.get(name, {})} for name in sorted({*known, *weights})}
    lines = [_HEAD.format(name=path.name)]
    for pool, members in pools.items():
        lines.append(f"[pools.{pool}]")
        for member, weight in sorted(members.items(), key=lambda pair: (-pair[1], pair[0])):
            name = public(pool, member)
            lines.append(f"{member:0{_DIGITS}x} = {weight:g}" + (f"  # {name}" if name.isprintable() and name else ""))
        lines.append("")
    text = "\n".join(lines)
    # Beside the old file: only within one file system it can be renamed in one step.
    new = path.absolute().with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text)
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise SettingsError(f"{path} cannot be written: {error.strerror}", hint="Give another file.") from error

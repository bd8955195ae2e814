"""The Lua scripts: one file per command, assembled with the helpers that it uses.

A file declares imports, `-- uses job_lanes: load_lanes touch`, and a helper its exports, `-- exports: touch`. Each
helper is a block of its own, as Lua allows 200 local names per scope. Constants of lua_constants.py become values.

A script that fails in the middle is not rolled back. So in every script

- whatever can fail comes before the first write: decoding and checks of the arguments. Values are checked in Python
  before the call (batch_codec.py);
- `unpack` is bounded, to at most 1,000 values;
- a call's name is recorded last, so that a repeat of a failed call is executed;
- the elements of one call are bounded, here or by its caller: no call takes a tenth of a second.

Checked by tests/contract/test_redis_scripts.py; see docs/decisions/060-scripts-fail-before-they-write.md.
"""

import re
from collections.abc import Container, Sequence
from functools import lru_cache
from hashlib import sha1
from importlib.resources import files

from trotline.adapters.redis.lua_constants import CONSTANTS, lua_value

_FOLDER = files("trotline.adapters.redis") / "lua"
_HELPERS = _FOLDER / "helpers"
_SEEN = "seen"
"""Placeholder for the helpers of the job's duplicate filter."""
_USES = re.compile(r"^-- uses (\w+): (.+)$", re.MULTILINE)
_EXPORTS = re.compile(r"^-- exports: (.+)$", re.MULTILINE)
_CONSTANTS = {name: lua_value(value) for name, value in CONSTANTS.items()}
_CAPITALS = re.compile(r"(?<![\w\"'])[A-Z][A-Z_]*(?![\w\"'])")
_WORDS = re.compile(r"\w+")
_NUMBERS = re.compile(r"^ *local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d.]+(?:, [\d.]+)*)$", re.MULTILINE)


class Script:
    """An assembled script, and its hash for EVALSHA."""

    __slots__ = ("name", "sha", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.sha = sha1(text.encode()).hexdigest()  # noqa: S324 - Redis names scripts so


@lru_cache
def script(name: str, *, seen: tuple[str, ...] = ("seen_exact",), even_when_full: bool = False) -> Script:
    """`seen`: the helpers of the duplicate filter. `even_when_full`: allow it when the server is out of memory, for
    calls that need no more."""
    first, _, rest = (_FOLDER / f"{name}.lua").read_text().partition("\n")
    if even_when_full:
        first = "#!lua flags=allow-oom"
    return Script(name, f"{first}\n{assembled(helpers_of(rest, seen), rest)}")


def assembled(helpers: Sequence[str], text: str) -> str:
    """The helpers and the text, with constants replaced."""
    parts, words = [text], set(_WORDS.findall(text))
    for helper in reversed(helpers):
        parts.append(_block(helper, words))
        words.update(_WORDS.findall(parts[-1]))
    return _with_constants("\n".join(reversed(parts)))


def helpers_of(text: str, seen: Sequence[str]) -> list[str]:
    """The helpers that the text uses, in the order of their dependencies."""
    found: dict[str, None] = {}

    def visit(part: str) -> None:
        for name, _ in _USES.findall(part):
            for helper in seen if name == _SEEN else (name,):
                if helper not in found:
                    visit(helper_text(helper))
                    found[helper] = None

    visit(text)
    return list(found)


def _block(name: str, wanted: Container[str]) -> str:
    """The helper as a block that defines only the exports in `wanted`."""
    text = helper_text(name)
    exports = " ".join(_EXPORTS.findall(text)).split()
    outside = [export for export in exports if export in wanted]
    inside = [export for export in exports if export not in wanted]
    return f"{_locals(outside)}do\n{_locals(inside)}{text}end"


def _locals(names: Sequence[str]) -> str:
    return f"local {', '.join(names)}\n" if names else ""


def _with_constants(text: str) -> str:
    """Replace named constants by their values: Lua would look up each of them at every use."""
    constants = dict(_CONSTANTS)
    for names, values in _NUMBERS.findall(text):
        constants |= dict(zip(names.split(", "), values.split(", "), strict=True))
    return _CAPITALS.sub(lambda found: constants.get(found[0], found[0]), _NUMBERS.sub("", text))


def helper_text(name: str) -> str:
    return (_HELPERS / f"{name}.lua").read_text()

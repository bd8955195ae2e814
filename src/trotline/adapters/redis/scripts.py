"""The Lua scripts: one file per command, with the helpers that it uses put in front of it.

A file names what it uses, `-- uses lanes: load_lanes touch`, and a helper what it gives to others, `-- exports: touch`.
Each helper is a block of its own, and only its exports are seen outside of it: Lua has room for 200 local names in one
scope. Names of constants that Python knows too (lua_constants.py) are replaced by their values.

A script that fails in the middle is not undone: what it wrote stays, and the rest is lost. So in every one of them

- whatever can fail comes before the first write: reading what was asked, and every check of it. What a number or a name
  may be is checked in Python, before anything is sent (batch_codec.py);
- nothing grows with the data that has a limit in Lua: `unpack` always says how far, and never beyond 1,000 values;
- a call's name is recorded last: a repeat of a call that failed half-way is not answered as if it had been done;
- the elements of one call are bounded, here or by its caller: no call takes a tenth of a second.

tests/contract/test_redis_scripts.py goes over all of them; docs/decisions/060-scripts-fail-before-they-write.md.
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
"""Stands for the helpers that remember what was admitted; a job's memory says which those are."""
_USES = re.compile(r"^-- uses (\w+): (.+)$", re.MULTILINE)
_EXPORTS = re.compile(r"^-- exports: (.+)$", re.MULTILINE)
_CONSTANTS = {name: lua_value(value) for name, value in CONSTANTS.items()}
_CAPITALS = re.compile(r"(?<![\w\"'])[A-Z][A-Z_]*(?![\w\"'])")
_WORDS = re.compile(r"\w+")
_NUMBERS = re.compile(r"^ *local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d.]+(?:, [\d.]+)*)$", re.MULTILINE)


class Script:
    """A script as the server gets it, and the name that the server knows it by."""

    __slots__ = ("name", "sha", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.sha = sha1(text.encode()).hexdigest()  # noqa: S324 - Redis names scripts so


@lru_cache
def script(name: str, *, seen: tuple[str, ...] = ("seen_exact",), even_when_full: bool = False) -> Script:
    """`seen`: the helpers that remember what was admitted. `even_when_full`: run it also when the server's memory is
    full; for calls that need no more of it."""
    first, _, rest = (_FOLDER / f"{name}.lua").read_text().partition("\n")
    if even_when_full:
        first = "#!lua flags=allow-oom"
    return Script(name, f"{first}\n{assembled(helpers_of(rest, seen), rest)}")


def assembled(helpers: Sequence[str], text: str) -> str:
    """The text with these helpers in front of it, and with the values of its constants."""
    parts, words = [text], set(_WORDS.findall(text))
    for helper in reversed(helpers):
        parts.append(_block(helper, words))
        words.update(_WORDS.findall(parts[-1]))
    return _with_constants("\n".join(reversed(parts)))


def helpers_of(text: str, seen: Sequence[str]) -> list[str]:
    """The helpers that the text needs, each after those that it needs itself."""
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
    """The helper, of which nothing is seen outside but the exports that are wanted there."""
    text = helper_text(name)
    exports = " ".join(_EXPORTS.findall(text)).split()
    outside = [export for export in exports if export in wanted]
    inside = [export for export in exports if export not in wanted]
    return f"{_locals(outside)}do\n{_locals(inside)}{text}end"


def _locals(names: Sequence[str]) -> str:
    return f"local {', '.join(names)}\n" if names else ""


def _with_constants(text: str) -> str:
    """The script with its named numbers put in: Lua would look up each of them, every time, and there are many."""
    constants = dict(_CONSTANTS)
    for names, values in _NUMBERS.findall(text):
        constants |= dict(zip(names.split(", "), values.split(", "), strict=True))
    return _CAPITALS.sub(lambda found: constants.get(found[0], found[0]), _NUMBERS.sub("", text))


def helper_text(name: str) -> str:
    return (_HELPERS / f"{name}.lua").read_text()

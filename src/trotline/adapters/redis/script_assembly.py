"""Assembles a Lua script from its file and the helpers that it uses.

Making the functions of a script costs the server more than most calls of them, so they are made once where they can be
kept (scripts.py). The text that comes out therefore has two parts: the functions, and `answer(keys, args)`, which runs
everything else anew for each call: first the statements of the helpers, in the order of their dependencies, then those
of the script. A name that the statements declare with `local` belongs to the functions, too. The line `local x = ...`
with the comment `once` behind it is run with the functions: what it keeps is kept from call to call.

Helpers come in groups: mostly one, or the parts of a helper and then that helper, of which alone the exports are seen
from outside. Lua allows 200 local names at the same time.
"""

import re
from collections.abc import Container, Sequence, Set
from itertools import chain

from trotline.adapters.redis.lua_constants import CONSTANTS, lua_value

_EXPORTS = re.compile(r"^-- exports: (.+)$", re.MULTILINE)
_CONSTANTS = {name: lua_value(value) for name, value in CONSTANTS.items()}
_CAPITALS = re.compile(r"(?<![\w\"'])[A-Z][A-Z_]*(?![\w\"'])")
_WORDS = re.compile(r"\w+")
_NUMBERS = re.compile(r"^ *local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d.]+(?:, [\d.]+)*)$", re.MULTILINE)
_COMMENT = re.compile(r"--.*")
_ONCE = re.compile(r"^local .* -- once\n", re.MULTILINE)
_FUNCTION = re.compile(r"^(?:local )?function (\w+)\((?:.* end\n|.*\n(?: .*\n|\n)*end\n)", re.MULTILINE)
_LOCAL = re.compile(r"^local ([\w, ]+?)( = |$)", re.MULTILINE)
_HEAD = """\
local KEYS, ARGV
local helper_starts = {}
"""
_ANSWER = """\
local function answer(given_keys, given_args)
KEYS, ARGV = given_keys, given_args
for i = 1, #helper_starts do
local no_answer = helper_starts[i]()
if no_answer then return no_answer end
end
"""


def assembled(groups: Sequence[Sequence[str]], text: str) -> str:
    """The text, which defines `answer`, from the texts of helpers and script, with constants replaced. Functions that
    nobody calls are left out."""
    constants = dict(_CONSTANTS)
    for part in (*chain.from_iterable(groups), text):
        for names, values in _NUMBERS.findall(part):
            constants |= dict(zip(names.split(", "), values.split(", "), strict=True))
    parts = [_main(_NUMBERS.sub("", text))]
    words = _words(parts[0])
    for group in reversed(groups):
        parts.append(_grouped([_NUMBERS.sub("", helper) for helper in group], words))
        words |= _words(parts[-1])
    parts.append(_HEAD)
    # Lua would look up each of them at every use.
    return _CAPITALS.sub(lambda found: constants.get(found[0], found[0]), "".join(reversed(parts)))


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text))


def _main(text: str) -> str:
    names, functions, statements = _split(text, None)
    return f"{_locals(names)}{functions}{_ANSWER}{statements}end\n"


def _grouped(helpers: Sequence[str], wanted: Set[str]) -> str:
    """The last of the helpers with its parts, of which only its own exports in `wanted` are seen from outside."""
    names, block = _block(helpers[-1], wanted)
    if len(helpers) == 1:
        return f"{_locals(names)}{block}"
    words = wanted | _words(block)
    for part in reversed(helpers[:-1]):
        own_names, own_block = _block(part, words)
        # The helper may export names of its parts.
        block = f"{_locals([name for name in own_names if name not in names])}{own_block}{block}"
        words |= _words(own_block)
    return f"{_locals(names)}do\n{block}end\n"


def _block(text: str, wanted: Container[str]) -> tuple[Sequence[str], str]:
    """Those exports of a helper that are in `wanted`, and the helper: no other name of it is seen from outside."""
    exports = " ".join(_EXPORTS.findall(text)).split()
    names, functions, statements = _split(text, wanted)
    words = _words(functions) | _words(statements)
    outside = [export for export in exports if export in wanted]
    inside = [export for export in exports if export not in wanted and export in words]
    start = f"helper_starts[#helper_starts + 1] = function()\n{statements}end\n" if statements else ""
    return outside, f"do\n{_locals([*inside, *names])}{functions}{start}end\n"


def _split(text: str, wanted: Container[str] | None) -> tuple[Sequence[str], str, str]:
    """The names that are declared, what is made once, and what runs in each call."""
    once = _ONCE.findall(text)
    text = _COMMENT.sub("", _ONCE.sub("", text) + "\n")
    if wanted is not None:
        text = _without_unused(text, wanted)
    names: dict[str, None] = {}

    def declare(found: re.Match[str]) -> str:
        names.update(dict.fromkeys(found[1].split(", ")))
        return f"{found[1]}{found[2] or ' = nil'}"

    functions = "".join(found[0] for found in _FUNCTION.finditer(text))
    statements = _LOCAL.sub(declare, _FUNCTION.sub("", text))
    lines = [line for line in statements.split("\n") if line.strip()]
    return list(names), "".join(once) + functions, "".join(f"{line}\n" for line in lines)


def _without_unused(text: str, wanted: Container[str]) -> str:
    """Without functions that neither others nor this helper call."""
    for found in reversed(list(_FUNCTION.finditer(text))):
        rest = text[: found.start()] + text[found.end() :]
        if found[1] not in wanted and found[1] not in _words(rest):
            return _without_unused(rest, wanted)
    return text


def _locals(names: Sequence[str]) -> str:
    return f"local {', '.join(names)}\n" if names else ""

"""Lua scripts as text: what they define, what they use, and how many locals a function of them has."""

import re
from functools import cache
from pathlib import Path

from trotline.adapters.redis.scripts import _FOLDER

FOLDER = Path(str(_FOLDER))
FILES = sorted(FOLDER.rglob("*.lua"))
COMMANDS = sorted(path.stem for path in FILES if path.parent.name == "lua")
HELPERS = sorted(path.stem for path in FILES if path.parent.name == "helpers")

PRIVATE_NUMBERS = re.compile(r"^ *local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d.]+(?:, [\d.]+)*)$", re.MULTILINE)
_WORDS = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")


@cache
def code_of(text: str) -> str:
    """Without comments, and with empty strings."""
    return re.sub(r'"[^"\n]*"', '""', re.sub(r"--.*", "", text))


@cache
def declared_in(code: str) -> frozenset[str]:
    """Every name that is a local, a parameter or a loop's variable somewhere."""
    found = re.findall(r"\blocal function (\w+)", code)
    for names in (
        *re.findall(r"\blocal ([\w, ]+?)(?: =|$)", code, re.MULTILINE),
        *re.findall(r"\bfor ([\w, ]+?) (?:=|in)", code),
        *re.findall(r"\bfunction\s*\w*\(([\w, ]*)\)", code),
    ):
        found += [name.strip() for name in names.split(",")]
    return frozenset(found)


@cache
def names_in(code: str) -> frozenset[str]:
    """Identifiers, but for fields of tables."""
    return frozenset(re.findall(r"(?<![\w.])[A-Za-z_]\w*", code))


def most_locals(text: str) -> int:
    """The largest number of locals that one function has at one moment; Lua has room for 200."""
    functions, blocks = [[0]], [0]
    most, pending = 0, 0
    words = _WORDS.findall(code_of(text))
    for place, word in enumerate(words):
        if word == "local":
            count = 1 if words[place + 1] == "function" else _listed(words, place + 1)
            functions[-1][-1] += count
        elif word == "for":
            # The loop keeps three of its own.
            pending = 3 + _listed(words, place + 1)
        elif word == "function":
            opens = words.index("(", place)
            functions.append([_listed(words, opens + 1) if words[opens + 1] != ")" else 0])
            blocks.append(1)
        elif word in ("do", "then", "repeat", "else"):
            if word == "else":
                functions[-1].pop()
                blocks.pop()
            functions[-1].append(pending if word == "do" else 0)
            pending = 0 if word == "do" else pending
            blocks.append(0)
        elif word in ("end", "until", "elseif"):
            if blocks.pop():
                functions.pop()
            else:
                functions[-1].pop()
        most = max(most, sum(functions[-1]))
    assert blocks == [0], "a block is left open"
    return most


def _listed(words: list[str], at: int) -> int:
    """How many names stand there, with commas between them."""
    count = 1
    while words[at + 1 : at + 2] == [","]:
        count, at = count + 1, at + 2
    return count

"""The Lua scripts: one file per command, with the shared pieces that it names put in front of it.

A script that fails in the middle is not undone: what it wrote stays, and the rest is lost. So in every one of them

- whatever can fail comes before the first write: reading what was asked, and every check of it. What a number or a name
  may be is checked in Python, before anything is sent (batches.py);
- nothing grows with the data that has a limit in Lua: `unpack` always says how far, and never beyond 1,000 values;
- a call's name is recorded last: a repeat of a call that failed half-way is not answered as if it had been done;
- the elements of one call are bounded, here or by its caller: no call takes a tenth of a second.

tests/contract/test_redis_scripts.py goes over all of them; docs/decisions/060-scripts-fail-before-they-write.md.
"""

import re
from functools import lru_cache
from hashlib import sha1
from importlib.resources import files

_FOLDER = files("trotline.adapters.redis") / "lua"
_NEEDS = "-- needs: "
_NUMBERS = re.compile(r"^local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d.]+(?:, [\d.]+)*)$", re.MULTILINE)


class Script:
    """A script as the server gets it, and the name that the server knows it by."""

    __slots__ = ("name", "sha", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.sha = sha1(text.encode()).hexdigest()  # noqa: S324 - Redis names scripts so


@lru_cache
def script(name: str, *, seen: tuple[str, ...] = ("seen_exact",), even_when_full: bool = False) -> Script:
    """`seen`: the pieces that remember what was admitted. `even_when_full`: run it also when the server's memory is
    full; for calls that need no more of it."""
    first, _, rest = _read(name).partition("\n")
    if even_when_full:
        first = "#!lua flags=allow-oom"
    second = rest.partition("\n")[0]
    needs = second.removeprefix(_NEEDS).split() if second.startswith(_NEEDS) else []
    pieces = [_read(part) for piece in needs for part in (seen if piece == "seen" else (piece,))]
    return Script(name, _with_numbers("\n".join([first, *pieces, rest])))


def _with_numbers(text: str) -> str:
    """The script with its named numbers put in: Lua would look up each of them, every time, and there are many."""
    numbers: dict[str, str] = {}
    for names, values in _NUMBERS.findall(text):
        numbers |= dict(zip(names.split(", "), values.split(", "), strict=True))
    if not numbers:
        return text
    used = re.compile(rf"(?<![\w\"'])({'|'.join(numbers)})(?![\w\"'])")
    return used.sub(lambda found: numbers[found[1]], _NUMBERS.sub("", text))


def _read(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text()

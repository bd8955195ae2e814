"""The Lua scripts: one file per command, assembled with the helpers that it uses (script_assembly.py).

A file declares imports, `-- uses job_lanes: load_lanes touch`, and a helper its exports, `-- exports: touch`. Each
helper is a block of its own, as Lua allows 200 local names per scope; one that says `-- part of pool_members` is within
the block of that helper, and seen by its other parts only. Constants of lua_constants.py become values.

The scripts of every page are functions of the server (server_functions.py): EVALSHA makes all functions of a script
anew for each call. See docs/decisions/158-scripts-of-every-page-are-functions.md.

A script that fails in the middle is not rolled back. So in every script

- whatever can fail comes before the first write: decoding and checks of the arguments. Values are checked in Python
  before the call (batch_codec.py);
- `unpack` is bounded, to at most 1,000 values;
- a call's name is recorded last, so that a repeat of a failed call is executed;
- the elements of one call are bounded, here or by its caller: no call takes a tenth of a second.

Checked by tests/contract/test_redis_scripts.py; see docs/decisions/060-scripts-fail-before-they-write.md.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha1
from importlib.resources import files

from trotline.adapters.redis import script_assembly

_FOLDER = files("trotline.adapters.redis") / "lua"
_HELPERS = _FOLDER / "helpers"
_SEEN = "seen"
"""Placeholder for the helpers of the job's duplicate filter."""
_USES = re.compile(r"^-- uses (\w+): (.+)$", re.MULTILINE)
_PART_OF = re.compile(r"^-- part of (\w+)$", re.MULTILINE)
_AS_FUNCTIONS = frozenset({"put", "lease", "settle"})
LIBRARIES = "trotline_"
"""The names of libraries begin with it; a hash of the text follows, so that versions do not disturb each other."""
_ALLOW_OOM = "#!lua flags=allow-oom"
_WHEN_FULL = "_when_full"


class Script:
    """An assembled script, and its hash for EVALSHA. `function`: its name as a function of the server, or ""."""

    __slots__ = ("function", "library", "name", "sha", "text")

    def __init__(self, name: str, first: str, body: str) -> None:
        """`first`: the line with its flags."""
        self.name = name
        self.text = _as_script(first, body)
        self.sha = _sha(self.text)
        self.function = self.library = ""
        if name in _AS_FUNCTIONS:
            library = f"{LIBRARIES}{name}_{_sha(body)[:16]}"
            self.function = library + (_WHEN_FULL if first == _ALLOW_OOM else "")
            self.library = _as_library(library, body)
            """The same for both functions: with its flags, and for a server that is out of memory."""


def _as_script(first: str, body: str) -> str:
    return f"{first}\nlocal given_keys, given_args = KEYS, ARGV\n{body}return answer(given_keys, given_args)\n"


def _as_library(name: str, body: str) -> str:
    return (
        f"#!lua name={name}\n{body}redis.register_function('{name}', answer)\n"
        f"redis.register_function{{function_name='{name}{_WHEN_FULL}', callback=answer, flags={{'allow-oom'}}}}\n"
    )


def _sha(text: str) -> str:
    return sha1(text.encode()).hexdigest()  # noqa: S324 - Redis names scripts so


@lru_cache
def script(name: str, *, seen: tuple[str, ...] = ("seen_exact",), even_when_full: bool = False) -> Script:
    """`seen`: the helpers of the duplicate filter. `even_when_full`: allow it when the server is out of memory, for
    calls that need no more."""
    first, _, rest = (_FOLDER / f"{name}.lua").read_text().partition("\n")
    return Script(name, _ALLOW_OOM if even_when_full else first, _body(rest, seen))


def plain_script(text: str, seen: Sequence[str] = ()) -> str:
    """A text with the helpers that it uses, for EVAL."""
    return _as_script("", _body(text, seen))


def _body(text: str, seen: Sequence[str]) -> str:
    groups = [[helper_text(helper) for helper in group] for group in _groups_of(helpers_of(text, seen))]
    return script_assembly.assembled(groups, text)


def _groups_of(helpers: Sequence[str]) -> list[list[str]]:
    """Each helper behind its parts, which come as late as the last of them."""
    parts: dict[str, list[str]] = {}
    groups = []
    for helper in helpers:
        if whole := _PART_OF.search(helper_text(helper)):
            parts.setdefault(whole[1], []).append(helper)
        else:
            groups.append([*parts.pop(helper, []), helper])
    if parts:
        raise ValueError(f"{', '.join(sorted(parts))}: used by a part only")
    return groups


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


def helper_text(name: str) -> str:
    return (_HELPERS / f"{name}.lua").read_text()

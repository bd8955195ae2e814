"""What holds for the text of every Lua script; tests/contract/test_redis_scripts.py asks the server."""

import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.adapters.redis.lua_text import (
    COMMANDS,
    FILES,
    FOLDER,
    HELPERS,
    PRIVATE_NUMBERS,
    code_of,
    declared_in,
    most_locals,
    names_in,
)
from trotline.adapters.redis.lua_constants import CONSTANTS
from trotline.adapters.redis.lua_layouts import Books
from trotline.adapters.redis.script_assembly import assembled
from trotline.adapters.redis.scripts import helper_text, helpers_of, script
from trotline.model import pace as pace_model
from trotline.ports import frontier
from trotline.rules import adaptive_pace, bloom_filter, counter_limits, lane_sharing, pace, retries

MODULES = (frontier, pace_model, adaptive_pace, bloom_filter, counter_limits, lane_sharing, pace, retries)
MEMORIES = (
    ("seen_exact",),
    ("seen_exact", "fingerprints_exact", "seen_site"),
    ("fingerprints_bloom", "seen_bloom"),
    ("fingerprints_bloom", "seen_bloom", "seen_site"),
)
MOST_LOCALS = 155
"""Lua has room for 200."""
PLAIN_NUMBERS = {
    "0", "1", "2", "3", "4", "5", "6", "8", "9", "10", "16", "17", "32", "64", "128", "255", "65535", "4294967295",
    "0.5", "1e6", "1e9", "999", "1000", "1001",
}  # fmt: skip
"""Written as they are: counting and halving, bits and bytes, units of time, places of arguments, and the 1,000 values
that one command takes."""
BUILT_IN = {"KEYS", "ARGV"}


def memory_matters(path: Path, seen: tuple[str, ...]) -> bool:
    """Asked of helpers, not of assembled scripts: these take seconds, in every process that collects."""
    text = path.read_text()
    return helpers_of(text, seen) != helpers_of(text, MEMORIES[0])


files = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
scripts = pytest.mark.parametrize(
    ("name", "seen"),
    [
        pytest.param(name, seen, id=f"{name}-{seen[-1]}")
        for name in COMMANDS
        for seen in MEMORIES
        if seen == MEMORIES[0] or memory_matters(FOLDER / f"{name}.lua", seen)
    ],
)


def constants_of(module: ModuleType) -> set[str]:
    named = {name.lstrip("_") for name, value in vars(module).items() if isinstance(value, int | float)}
    return {name for name in named if name.isupper()}


def exports_of(helper: str) -> set[str]:
    return set(" ".join(re.findall(r"^-- exports: (.+)$", helper_text(helper), re.MULTILINE)).split())


def uses_of(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for helper, names in re.findall(r"^-- uses (\w+): (.+)$", text, re.MULTILINE):
        found.setdefault(helper, set()).update(names.split())
    return found


@files
def test_a_number_that_python_defines_is_not_defined_in_lua(path: Path) -> None:
    in_python = set(CONSTANTS).union(*map(constants_of, MODULES))
    defined = declared_in(code_of(path.read_text())) | exports_of_file(path)

    assert defined & in_python == set(), "Python defines it too: add it to lua_constants.py, and use it by its name"


def exports_of_file(path: Path) -> set[str]:
    return exports_of(path.stem) if path.stem in HELPERS else set()


@files
def test_a_number_without_a_name_is_a_plain_one(path: Path) -> None:
    code = PRIVATE_NUMBERS.sub("", code_of(path.read_text()))
    numbers = re.findall(r"(?<![\w.])\d[\w.]*", re.sub(r"(KEYS|ARGV)\[\d+\]", "", code))

    assert set(numbers) <= PLAIN_NUMBERS, "give it a name; in lua_constants.py if Python knows it too"


@files
def test_a_place_in_an_array_has_a_name(path: Path) -> None:
    places = re.findall(r"(?<!ARGV)\[(?:\w+ [+-] )?(\d+)\]", code_of(path.read_text()))

    assert {int(place) for place in places} <= {0, 1, 2}, "name the values of the array in lua_layouts.py"


@files
def test_a_number_of_a_file_is_its_own(path: Path) -> None:
    """scripts.py puts numbers in by their names, wherever these stand in the script."""
    own = set(_numbers(path))
    others = [other for other in FILES if other != path]

    for other in others:
        used = own & _names(other)
        assert used <= set(_numbers(other)), f"{other.name} uses it too: it belongs into lua_constants.py"


@cache
def _numbers(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for names, values in PRIVATE_NUMBERS.findall(path.read_text()):
        found |= dict(zip(names.split(", "), values.split(", "), strict=True))
    return found


@cache
def _names(path: Path) -> frozenset[str]:
    return names_in(code_of(path.read_text()))


@files
def test_a_file_names_what_it_uses_of_helpers(path: Path) -> None:
    text = path.read_text()
    code = code_of(text)
    used = names_in(code) - declared_in(code) - exports_of_file(path)
    uses = uses_of(text)
    for helper, names in uses.items():
        exports = exports_of("seen_exact" if helper == "seen" else helper)
        assert names <= exports, f"{helper}.lua does not export it"
        assert used & exports == names, f"what it uses of {helper}.lua"
    if path.stem != "seen_site":
        # That one replaces the memory in front of it.
        assert used & set().union(*map(exports_of, HELPERS)) <= set().union(*uses.values())


def whole_of(text: str) -> str | None:
    found = re.search(r"^-- part of (\w+)$", text, re.MULTILINE)
    return found and found[1]


@files
def test_a_part_of_a_helper_is_used_within_that_helper_only(path: Path) -> None:
    text = path.read_text()
    for helper in uses_of(text).keys() - {"seen"}:
        whole = whole_of(helper_text(helper))
        assert whole is None or whole in (path.stem, whole_of(text)), f"{helper}.lua is a part of {whole}.lua"


def test_only_the_exports_of_a_helper_itself_are_seen_from_outside_of_its_parts() -> None:
    part = "-- exports: told kept\nfunction told() return kept end\nkept = 1\n"
    whole = "-- exports: told twice\nfunction twice() return told() + kept end\n"
    text = assembled([[part, whole]], "return twice() + told()")

    assert "local told, twice\ndo\nlocal kept\ndo\nfunction told() return kept end\n" in text
    assert "do\nfunction twice() return told() + kept end\nend\nend\nlocal function answer" in text


@scripts
def test_a_script_has_far_fewer_locals_than_lua_has_room_for(name: str, seen: tuple[str, ...]) -> None:
    assert most_locals(script(name, seen=seen).text) <= MOST_LOCALS


def test_locals_are_counted_by_scope() -> None:
    text = "local a, b\ndo local c = 1 end\nlocal function f(x, y) local z if x then local v else local w end end"
    assert most_locals(text) == 4
    assert most_locals("for i = 1, 2 do local a end local b, c") == 5
    assert most_locals("local " + ", ".join(f"x{i}" for i in range(201))) == 201


@scripts
def test_every_constant_of_a_script_is_known(name: str, seen: tuple[str, ...]) -> None:
    code = code_of(script(name, seen=seen).text)
    constants = {each for each in names_in(code) if each.isupper()}

    assert constants - declared_in(code) <= BUILT_IN


def test_a_constant_is_put_in_with_the_value_that_python_has() -> None:
    assert f"return now - {frontier.DEAD_AFTER:g}\n" in assembled((), "return now - DEAD_AFTER")
    assert f"now - {frontier.DEAD_AFTER:g}" in script("lease").text
    assert f"+ {retries.LATER_BY}) * 2 + 1" in script("settle").text


def test_the_books_have_the_same_order_in_lua_and_in_python() -> None:
    text = helper_text("job_counters")
    [read] = re.findall(r"^local (waiting.*?) =\s+unpack_\(BOOKS_FORM", text, re.MULTILINE | re.DOTALL)
    [kept] = re.findall(r"^book = \{(.*?)\}$", text, re.MULTILINE | re.DOTALL)
    [written] = re.findall(r" pack_\(BOOKS_FORM, (.*?)\)\)", text, re.DOTALL)

    assert tuple(re.findall(r"\w+", read)) == Books._fields
    assert {name for name, value in re.findall(r"(\w+) = (\w+)", kept) if name == value} >= set(Books._fields)
    assert tuple(re.findall(r"book\.(\w+)", written)) == Books._fields

"""How the cost of a function grows with its input, measured so that a noisy machine does not matter."""

import ast
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src" / "trotline"
WORTH = 0.004
"""Seconds of CPU: what costs less at its size limit needs no further look."""
CHEAP = 20e-9
"""Seconds per character: what stays below that up to its size limit costs as little as copying it a few times, and
page faults and caches decide how it grows."""
MOST = 2.5
"""Cost at 2n, as a multiple of the cost at n. (Linear: 2; quadratic: 4.)"""
_NAMES_RE = re.compile(r"\bre\.")
_FIRST = 256
_TRIES = 4


def cost(work: Callable[[Any], object], given: Any) -> float:
    started = time.thread_time()
    work(given)
    return time.thread_time() - started


def growth(work: Callable[[Any], object], hostile: Callable[[int], Any], limit: int) -> str:
    """Empty if doubling the input costs at most MOST times as much, at the smallest size that costs WORTH.

    Measured over two doublings: memory that is touched for the first time makes one of them look worse than it is.
    """
    size = _FIRST
    while 2 * size < limit and cost(work, hostile(size)) < _worth(size):
        size *= 2
    small, large = hostile(size // 2), hostile(2 * size)
    ratio = 0.0
    for _ in range(_TRIES):
        large_cost = min(cost(work, large) for _ in range(2))
        small_cost = min(cost(work, small) for _ in range(3))
        if large_cost < _worth(2 * size) or large_cost <= MOST**2 * small_cost:
            return ""
        ratio = large_cost / small_cost
    return f"{2 * size} cost {ratio:.1f} times as much as {size // 2} ({small_cost * 1000:.1f} ms)"


def _worth(size: int) -> float:
    return max(WORTH, CHEAP * size)


def patterns(folder: Path = SOURCE) -> Iterator[str]:
    """Every use of `re` that makes a pattern, as `rules/urls.py:_WEB` or `rules/scope.py:_compiled`.

    Test servers (`testing/`) are not part of a crawl.
    """
    for file in sorted(folder.rglob("*.py")):
        name = file.relative_to(folder)
        if name.parts[0] != "testing":
            text = file.read_text()
            for place in _in_scope(ast.parse(text), "") if _NAMES_RE.search(text) else ():
                yield f"{name.as_posix()}:{place}"


def _in_scope(node: ast.AST, scope: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _in_scope(child, child.name)
        elif isinstance(child, ast.Assign) and _makes_pattern(child.value) and isinstance(child.targets[0], ast.Name):
            yield scope or child.targets[0].id
        elif _makes_pattern(child):
            yield scope or "module"
        else:
            yield from _in_scope(child, scope)


def _makes_pattern(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)):
            return name not in ("escape", "purge")
    return False


def pumps(pattern: "re.Pattern[Any]") -> list[str]:
    """Texts to repeat against a pattern: its own words and punctuation, blanks, and pairs of them."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    words = sorted(set(re.findall(r"[A-Za-z]{3,}", source)))[:8]
    marks = sorted({char for char in source if char.isprintable() and not char.isalnum()} - set("()|?*+[]{}\\^$"))
    single = [*words, *marks, " ", "\n", "a", "0", "/", "@"]
    return [*single, *(word + mark for word in words[:4] for mark in marks[:4]), *(f"{mark}a" for mark in marks[:6])]


def against(pattern: "re.Pattern[Any]", how: str, pump: str, prefix: str = "") -> str:
    """The growth of one pattern, used as the code uses it: `match`, `fullmatch`, `search` or `sub`."""

    def hostile(size: int) -> Any:
        text = (prefix + pump * (size // len(pump) + 1))[:size] + "\x00"
        return text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text

    def work(text: Any) -> object:
        # To the end of the text, also where `search` would stop at the first match.
        return sum(1 for _ in pattern.finditer(text)) if how in ("search", "sub") else getattr(pattern, how)(text)

    return growth(work, hostile, 1 << 15)

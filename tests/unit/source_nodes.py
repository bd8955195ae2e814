"""The imports, calls and comparisons of our source, parsed once for all tests of a process that look at it."""

import ast
import functools
import gc
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "trotline"


class Nodes(NamedTuple):
    imports: list[tuple[str, ast.Import | ast.ImportFrom]]
    """With the file, relative to the package."""
    calls: list[tuple[str, ast.Call]]
    comparisons: list[tuple[str, ast.Compare | ast.MatchValue]]


@functools.cache
def source_nodes() -> Nodes:
    found = Nodes([], [], [])
    # A collection in between would go through all trees again and again.
    was_on = gc.isenabled()
    gc.disable()
    try:
        for file in sorted(SOURCE.rglob("*.py")):
            name = str(file.relative_to(SOURCE))
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    found.imports.append((name, node))
                elif isinstance(node, ast.Call):
                    found.calls.append((name, node))
                elif isinstance(node, ast.Compare | ast.MatchValue):
                    found.comparisons.append((name, node))
    finally:
        if was_on:
            gc.enable()
    return found

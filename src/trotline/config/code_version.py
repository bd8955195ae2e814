"""The code version of a spider: a hash of its file and of the local modules that it imports."""

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from trotline.config.spider_loader import parse_ref

MOST_FILES = 500
"""At most this many files of a large program count."""


def code_version(ref: str) -> str:
    """Twelve characters that change with the spider's file and the local files that it imports; empty if it has no
    file that can be read. What is installed elsewhere does not count: an upgrade of a library is not a new version."""
    address = parse_ref(ref)
    place = address.file or _file_of(address.module)
    path = Path(place).resolve() if place else None
    if path is None or not path.is_file():
        return ""
    # Of a file: its folder. A module: the package that it is of, which may lie among all that is installed.
    top, *inner = address.module.split(".")
    root = path.parents[len(inner) + (path.stem == "__init__")] if address.module else path.parent
    files = sorted(_with_imports(path, root, "" if address.file else top))
    if files == [path]:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    parts = [f"{file.relative_to(root)} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _file_of(module: str) -> str:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return ""
    return (spec.origin or "") if spec is not None and spec.has_location else ""


def _with_imports(path: Path, root: Path, package: str) -> set[Path]:
    """The file, and all files under `root` that it leads to; of one package alone if one is named."""
    found, waiting = {path}, [path]
    while waiting and len(found) < MOST_FILES:
        here = waiting.pop()
        folder = here.parent.relative_to(root).parts
        for name in _imports(here.read_bytes(), folder):
            if package and name[0] != package:
                continue
            for file in _files(root, name):
                if file not in found and file.is_file():
                    found.add(file)
                    waiting.append(file)
    return found


def _files(root: Path, name: tuple[str, ...]) -> Iterator[Path]:
    """What `import a.b.c` may run: the packages on the way, and the module."""
    for length in range(1, len(name) + 1):
        yield root.joinpath(*name[:length], "__init__.py")
    yield root.joinpath(*name).with_suffix(".py")
    if len(name) > 1:
        # `from a.b import c`: c is a module of a.b, or a name in it.
        yield root.joinpath(*name[:-1]).with_suffix(".py")


@lru_cache(maxsize=MOST_FILES)
def _imports(source: bytes, folder: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    """The dotted names that a file imports, wherever in it. Empty if it is not Python: loading it reports the error."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else ()
            stem = (*base, *(node.module.split(".") if node.module else ()))
            found |= {(*stem, alias.name) for alias in node.names if alias.name != "*"}
            found |= {stem} if stem else set()
    return frozenset(found)

"""Used by the Dockerfile: import all of Trotline, and store the bytecode of what that imported.

The official Python images have no bytecode of the standard library, and a container with a read-only root cannot keep
any: without this, every start of a process would compile some 600 files. A package that is missing fails the build.

    compile_bytecode.py            of the image that most fleets use
    compile_bytecode.py --full     of the image with all extras
"""

import importlib
import pkgutil
import py_compile
import sys
from collections.abc import Sequence
from pathlib import Path

import trotline

ONLY_IN_FULL = frozenset({"aiobotocore", "botocore", "opentelemetry", "pyarrow", "wreq"})
"""Packages that modules import at their top, and that the usual image does not have."""
LATER = ("html_to_markdown", "PIL.Image", "pyarrow.parquet", "rapidfuzz.distance.OSA", "rensa")
"""Of the full image, imported by the functions that use them."""


def main(words: Sequence[str]) -> int:
    full = "--full" in words
    for module in pkgutil.walk_packages(trotline.__path__, "trotline."):
        if _wanted(module.name):
            _load(module.name, frozenset() if full else ONLY_IN_FULL)
    for name in LATER if full else ():
        importlib.import_module(name)
    files = {file for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}
    sources = sorted(file for file in files if file.endswith(".py"))
    for file in sources:
        # Unchecked: layers of an image may change the times of files, and their contents never change.
        py_compile.compile(file, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    stored = sum(path.stat().st_size for path in Path(sys.pycache_prefix or ".").rglob("*.pyc"))
    print(f"bytecode of {len(sources)} modules, {stored / 1e6:.1f} MB")
    return 0


ELSEWHERE = ("trotline.bridges.scrapy", "trotline.testing.")
"""The add-on runs in the environment of a Scrapy project, and the test tools need pytest."""


def _wanted(name: str) -> bool:
    """Not __main__, which would run its command, and of the test tools only the demo shop."""
    return not name.endswith("__main__") and (
        not name.startswith(ELSEWHERE) or name.startswith("trotline.testing.shop")
    )


def _load(name: str, optional: frozenset[str]) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in optional:
            raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

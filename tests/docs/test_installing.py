"""How the package and its extras are installed: from a clone, as long as it is on no package index."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
FILES = sorted({*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")})
_COMMAND = re.compile(r"pip install\b[^`\n]*")


def commands(file: Path) -> list[str]:
    return _COMMAND.findall(file.read_text())


def test_commands_are_found_at_all() -> None:
    assert sum(len(commands(file)) for file in FILES) > 20


@pytest.mark.parametrize(
    "file", [file for file in FILES if commands(file)], ids=lambda file: str(file.relative_to(ROOT))
)
def test_what_is_on_no_package_index_is_installed_from_a_clone(file: Path) -> None:
    for command in commands(file):
        assert not re.search(r"\strotline\b|'trotline\[", command.partition("#")[0]), (
            "on no index yet: pip install '.[EXTRA]'"
        )
        for extras in re.findall(r"'\.\[([\w,]+)\]'", command):
            assert set(extras.split(",")) <= EXTRAS

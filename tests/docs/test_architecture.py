"""The map of CONTRIBUTING.md and the architecture page, against the tree."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, links, section

SOURCE = ROOT / "src" / "trotline"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
ARCHITECTURE = DOCS / "explain" / "architecture.md"
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
CHANGES = dict(
    re.findall(r"^\| (?!change \||-+\|)(.+?) \| (.+) \|$", section(CONTRIBUTING, "Where do I change X?"), re.M)
)
BACKENDS = {
    "SQLite: one machine, no server": "sqlite",
    "Redis or Valkey: a fleet": "redis",
    "PostgreSQL: the sink of a fleet": "postgres",
}


def files(text: str) -> list[str]:
    return re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|lua|sql|md))`", text)


def missing(text: str) -> list[str]:
    return [path for path in files(text) if not ((SOURCE / path).is_file() or (ROOT / path).is_file())]


def test_the_map_has_one_line_for_every_room() -> None:
    assert sorted(re.findall(r"^\| `(\w+)/` \|", section(CONTRIBUTING, "The map"), re.M)) == ROOMS


def test_ten_usual_changes_have_their_files_named() -> None:
    assert len(CHANGES) >= 10
    assert [change for change, cell in CHANGES.items() if not files(cell)] == []


@pytest.mark.parametrize("change", CHANGES)
def test_every_file_of_a_usual_change_exists(change: str) -> None:
    assert missing(CHANGES[change]) == []


@pytest.mark.parametrize("change", CHANGES)
def test_every_name_in_a_usual_change_is_in_one_of_its_files(change: str) -> None:
    """`PLAIN`, `_filled`, `LaneRules`: constants, classes and private functions."""
    cell = CHANGES[change]
    places = [place for path in files(cell) for place in (SOURCE / path, ROOT / path) if place.is_file()]
    known = {word for place in places for word in re.findall(r"\w+", place.read_text())}
    named = re.findall(r"`([A-Z]\w+|_\w+)`", cell)

    assert [name for name in named if name not in known] == []


def test_the_picture_shows_every_room() -> None:
    picture = section(ARCHITECTURE, "Processes and rooms")
    assert [room for room in ROOMS if f"{room}/" not in picture] == []


def test_every_file_of_the_architecture_page_exists() -> None:
    text = ARCHITECTURE.read_text()
    assert len(files(text)) > 40
    assert missing(text) == []


@pytest.mark.parametrize(("heading", "folder"), BACKENDS.items())
def test_each_backend_has_its_path_with_files_of_its_own_folder(heading: str, folder: str) -> None:
    own = [path for path in files(section(ARCHITECTURE, heading)) if path.startswith(f"adapters/{folder}/")]
    assert len(own) >= 5


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "README.md", CONTRIBUTING], ids=lambda page: page.name)
def test_the_architecture_page_is_linked(page: Path) -> None:
    assert ARCHITECTURE in [(page.parent / link).resolve() for link in links(page)]

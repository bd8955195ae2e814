"""A unit test is found from the tree: its folder is the room of the module that it tests."""

from pathlib import Path

UNIT = Path(__file__).parent
ROOT = UNIT.parents[1]


def test_every_folder_of_unit_tests_is_a_room_of_the_source_or_the_scripts():
    folders = {str(file.parent.relative_to(UNIT)) for file in UNIT.rglob("test_*.py")} - {".", "scripts"}
    assert {folder for folder in folders if not (ROOT / "src" / "trotline" / folder).is_dir()} == set()

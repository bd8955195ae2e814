"""The reference pages keep up with the code."""

from pathlib import Path

import pytest

from trotline.cli import main as cli
from trotline.cli.run import CODES
from trotline.config.settings import NAMES

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_its_heading_and_its_variable(name: str):
    text = (REFERENCE / "settings.md").read_text()
    assert f"\n## {name}\n" in text
    assert f"TROTLINE_{name.upper()}" in text


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_its_heading_and_every_option_is_named(command: str):
    text = (REFERENCE / "cli.md").read_text()
    section = text.partition(f"\n## trotline {command}\n")[2].partition("\n## ")[0]
    found = cli.trotline.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    for option in found.params:
        flag = max(option.opts, key=len)
        if flag.startswith("--"):
            assert flag in section, f"{flag} of {command} is not in docs/reference/cli.md"


def test_every_exit_code_is_in_the_table():
    text = (REFERENCE / "exit-codes.md").read_text()
    for code in {*CODES.values(), cli.UNEXPECTED, cli.CANNOT_START, cli.BROKEN_PIPE}:
        assert f"\n| {code} |" in text

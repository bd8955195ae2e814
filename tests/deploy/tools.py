"""Files of deploy/, the tools that check them, and the command line that they call."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from trotline.cli.main import trotline as command_line
from trotline.testing.servers import missing

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PENDING = ("web", "--metrics")
"""A command and an option that may not be there yet."""


def tool(name: str) -> str:
    """The path of a tool of requirements/deploy.txt."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        missing(f"{name} is not installed; try: make .venv/.deploy")
    return found


def run(name: str, *words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([tool(name), *map(str, words)], capture_output=True, text=True, check=False, timeout=60)


def documents(text: str) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed; try: make .venv/.deploy")
    return [one for one in yaml.safe_load_all(text) if one]


def document(path: Path) -> dict[str, Any]:
    [found] = documents(path.read_text())
    return found


def command_of(words: Sequence[str]) -> click.Command | None:
    with command_line.make_context("trotline", [], resilient_parsing=True) as context:
        return command_line.get_command(context, words[0])


def unknown_options(words: Sequence[str]) -> set[str]:
    """Options that the command line does not have; an unknown command is one, too."""
    command = command_of(words)
    if command is None:
        return {words[0]}
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return {word for word in words[1:] if word.startswith("--")} - known

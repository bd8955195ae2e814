"""Runs `trotline` commands of the docs."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Result(NamedTuple):
    code: int
    out: str


def trotline(folder: Path, *words: str) -> Result:
    """Run `trotline ...` in a folder."""
    command = [sys.executable, "-m", "trotline.cli", *words]
    ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert "Traceback" not in ended.stdout, ended.stdout
    return Result(ended.returncode, ended.stdout)

"""The command line as a reader of the docs uses it."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Said(NamedTuple):
    code: int
    out: str


def trotline(folder: Path, *words: str) -> Said:
    """Run `trotline ...` in a folder."""
    command = [sys.executable, "-m", "trotline.cli", *words]
    ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert "Traceback" not in ended.stdout, ended.stdout
    return Said(ended.returncode, ended.stdout)

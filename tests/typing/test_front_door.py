"""The front door is typed: a user's checker accepts what works and rejects what does not."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_a_users_type_checker_accepts_and_rejects_what_it_should(tmp_path):
    # No project configuration: this is somebody else's code. An ignore that hides no error is an error.
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nwarn_unused_ignores = True\ncheck_untyped_defs = True\n")
    checker = [sys.executable, "-m", "mypy", "--config-file", str(settings), str(HERE / "front_door.py")]

    done = subprocess.run(checker, capture_output=True, text=True, check=False, cwd=HERE.parent.parent)

    assert done.returncode == 0, done.stdout + done.stderr

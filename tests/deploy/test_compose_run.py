"""The compose file in real containers, where these can be run at once; `make containers` runs it everywhere else."""

import subprocess
import sys

import pytest

from tests.deploy.compose_run import is_prepared
from tests.deploy.tools import ROOT


@pytest.mark.slow("builds an image and runs a fleet of containers: more than a minute")
@pytest.mark.timeout(600)
def test_a_job_that_is_scaled_in_mid_run_gives_the_right_rows() -> None:
    if not is_prepared():
        pytest.skip("podman or its base images are not there: `make containers` makes them")
    ended = subprocess.run(
        [sys.executable, "-m", "tests.deploy.compose_run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=590,
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"

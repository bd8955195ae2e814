import os
from pathlib import Path

import pytest

from trotline.processes.host_limits import cpu_cores, host_memory

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "cores"), [("50000 100000", 0.5), ("max 100000", CORES), ("99999999 100000", CORES), ("odd", CORES)]
)
def test_a_quota_of_the_container_is_the_number_of_cores(tmp_path: Path, text: str, cores: float):
    (tmp_path / "cpu.max").write_text(text)
    assert cpu_cores(tmp_path) == cores


def test_without_a_container_the_host_counts(tmp_path: Path):
    assert cpu_cores(tmp_path) == CORES
    assert host_memory(tmp_path) > 2**20


def test_the_memory_limit_of_the_container_counts(tmp_path: Path):
    (tmp_path / "memory.max").write_text("1048576\n")
    assert host_memory(tmp_path) == 2**20

import os
from pathlib import Path

import pytest

from trotline.processes.host_limits import bandwidth, cpu_cores, host_memory, received

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


ROUTES = "Iface Destination Gateway\neth0 00000000 0101A8C0\neth0 0001A8C0 00000000\n"
DEVICES = "Inter-|\n face |bytes\n    lo: 9999 1\n  eth0: 1000 5 0\n  eth1:24 1\n odd\n"


def test_the_speed_of_the_device_to_the_outside_is_the_bandwidth(tmp_path: Path):
    (tmp_path / "routes").write_text(ROUTES)
    (tmp_path / "eth0" / "device").mkdir(parents=True)
    (tmp_path / "eth0" / "speed").write_text("1000\n")
    assert bandwidth(tmp_path, tmp_path / "routes") == 125_000_000


def test_the_speed_of_a_virtual_device_is_unknown(tmp_path: Path):
    (tmp_path / "virtual").write_text(ROUTES)
    (tmp_path / "eth0").mkdir()
    (tmp_path / "eth0" / "speed").write_text("10000\n")
    assert bandwidth(tmp_path, tmp_path / "virtual") == 0.0
    assert bandwidth(tmp_path, tmp_path / "nowhere") == 0.0


def test_bytes_of_all_devices_but_the_loopback_are_added_up(tmp_path: Path):
    (tmp_path / "dev").write_text(DEVICES)
    assert received(tmp_path / "dev") == 1024
    assert received(tmp_path / "nowhere") == 0

"""Whether a process is alive: said only where it is certain."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trotline.adapters import host_process
from trotline.adapters.host_process import exists, lives, process_name


def ended_process() -> tuple[int, str]:
    """The pid and the name of a process that is gone."""
    name = "from trotline.adapters import host_process; print(host_process.process_name())"
    printed = subprocess.run([sys.executable, "-c", name], capture_output=True, text=True, check=True).stdout.strip()
    return int(printed.split("/")[1]), printed


def test_a_process_lives_until_it_has_ended() -> None:
    pid, name = ended_process()
    assert (lives(process_name()), lives(name)) == (True, False)
    assert (exists(os.getpid()), exists(pid), exists(2**70)) == (True, False, False)


def test_a_later_process_with_the_same_pid_is_another_one() -> None:
    where, pid, started = process_name().split("/")
    assert lives(f"{where}/{pid}/{int(started) - 1}") is False


def test_a_process_of_another_container_is_not_called_dead() -> None:
    """It has the host's boot id, and may have its name; its pids are others."""
    pid, name = ended_process()
    started = name.split("/")[2]
    assert lives(f"{host_process.boot()}.pid:[1]/{pid}/{started}") is None


def test_a_reboot_ends_every_process() -> None:
    assert lives(f"another-boot/{os.getpid()}/1") is False
    assert lives(f"another-boot.pid:[1]/{os.getpid()}/1") is False


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc that hides the processes."""
    (tmp_path / f"{os.getpid()}/ns").mkdir(parents=True)
    (tmp_path / "self").symlink_to(str(os.getpid()))
    (tmp_path / "self/ns/pid").symlink_to(host_process._HOSTS_PIDS)
    monkeypatch.setattr(host_process, "_PROC", tmp_path)
    return tmp_path


def test_a_process_that_is_hidden_from_us_may_live(proc: Path) -> None:
    assert lives(f"{host_process.boot()}/{os.getpid()}/1") is None


def test_in_a_container_pids_are_those_of_the_container(proc: Path) -> None:
    (proc / "self/ns/pid").unlink()
    (proc / "self/ns/pid").symlink_to("pid:[4026532178]")
    assert process_name(1).startswith(f"{host_process.boot()}.pid:[4026532178]/1/")
    assert lives(f"{host_process.boot()}/{os.getpid()}/1") is None


@pytest.mark.parametrize("other", ["the /proc of another container", "no /proc"])
def test_without_a_proc_of_our_own_nothing_is_said(proc: Path, other: str) -> None:
    (proc / "self").unlink()
    if other != "no /proc":
        (proc / "self").symlink_to("1")
    pid, name = ended_process()
    assert name.startswith(host_process.boot())
    assert lives(name) is None
    assert lives(process_name(pid)) is None

"""`make demo` prints rows, compares them with the shop's data, and leaves no files behind."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from trotline.testing import demo

COMMAND = [sys.executable, "-u", "-m", "trotline.testing.demo"]


def test_the_demo_prints_rows_and_finds_them_all(tmp_path: Path) -> None:
    ended = subprocess.run([*COMMAND, "--folder", tmp_path, "--products", "30"], capture_output=True, text=True)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "30 products in the shop, 30 rows: 0 missing, 0 too many, 0 different" in ended.stdout
    assert "T1    Fjord Winter Pu-erh No. 1" in ended.stdout
    assert (tmp_path / "shop.db").exists()


def test_rows_that_differ_from_the_truth_are_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = {"T1": ("Tea", "€1.00"), "T2": ("Cup", "€2.00"), "T3": ("Pot", "€3.00")}
    found = {"T1": ("Tea", "€9.00"), "T2": ("Cup", "€2.00"), "T4": ("Jar", "€4.00")}

    assert demo.compare(found, truth, tmp_path) == demo.DIFFERENT
    assert "1 missing, 1 too many, 1 different" in capsys.readouterr().out
    assert demo.compare(truth, truth, tmp_path) == 0


def test_ctrl_c_stops_the_run_and_closes_the_shop(tmp_path: Path) -> None:
    command = [*COMMAND, "--folder", tmp_path, "--products", "5000"]
    # A session of its own, so that the signal reaches the demo and what it started, as Ctrl-C does, and not the tests.
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert running.stdout is not None
        port = None
        for line in running.stdout:
            port = port or re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if "waiting" in line:
                break
        os.killpg(running.pid, signal.SIGINT)
        rest = running.stdout.read()
        assert running.wait() == demo.INTERRUPTED, rest
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
    assert "interrupted; nothing is lost" in rest
    assert port is not None
    with socket.socket() as caller:
        assert caller.connect_ex(("127.0.0.1", int(port[1]))) != 0, "the shop is still open"

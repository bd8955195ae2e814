"""The cell that a supervisor reads after its child is gone."""

import mmap
import os
import subprocess
import sys
import tempfile
from math import isfinite

import pytest

from trotline.worker.parsing_marker import SIZE, Marker


def test_a_new_marker_blames_nobody():
    marker = Marker()

    assert (marker.suspect, marker.reading_since, marker.alive_at) == (None, None, 0.0)


def test_the_page_being_read_is_to_blame():
    marker = Marker()
    marker.reading(4711, 12.5)

    assert (marker.suspect, marker.reading_since) == (4711, 12.5)


def test_a_page_that_was_read_is_not():
    marker = Marker()
    marker.reading(4711, 12.5)
    marker.read()

    assert (marker.suspect, marker.reading_since) == (None, None)


@pytest.mark.parametrize("token", [1, 2**62, 2**63 - 1, -(2**63)])
def test_every_token_fits(token):
    marker = Marker()
    marker.reading(token, 1.0)

    assert marker.suspect == token


def test_life_and_blame_do_not_touch():
    marker = Marker()
    marker.alive(99.5)
    marker.reading(7, 1.0)
    marker.read()
    assert marker.alive_at == 99.5

    marker.reading(7, 1.0)
    marker.alive(100.5)
    assert (marker.suspect, marker.alive_at) == (7, 100.5)


@pytest.mark.parametrize("half", [slice(0, 8), slice(8, 16)])
def test_a_half_written_cell_never_looks_like_a_page_read_since_for_ever(half):
    whole, torn = bytearray(SIZE), bytearray(SIZE)
    Marker(whole).reading(4711, 12.5)
    torn[half] = whole[half]

    assert Marker(torn).reading_since is None


def test_a_supervisor_knows_the_page_of_a_child_that_was_killed():
    with tempfile.TemporaryFile() as cell:
        os.ftruncate(cell.fileno(), SIZE)
        code = (
            "import mmap, os, signal, sys\n"
            "from trotline.worker.parsing_marker import SIZE, Marker\n"
            "marker = Marker(mmap.mmap(int(sys.argv[1]), SIZE))\n"
            "marker.alive(3.5)\n"
            "marker.reading(4711, 2.25)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        child = subprocess.run(
            [sys.executable, "-c", code, str(cell.fileno())], pass_fds=[cell.fileno()], check=False, timeout=60
        )
        marker = Marker(mmap.mmap(cell.fileno(), SIZE))

    assert child.returncode == -9
    assert (marker.suspect, marker.reading_since, marker.alive_at) == (4711, 2.25, 3.5)


def test_evidence_belongs_to_the_page_that_is_being_read():
    marker = Marker()
    name = "0123456789abcdef" * 2
    assert marker.evidence == ""
    marker.kept(7, name)
    assert marker.evidence == "", "nobody is suspect"
    marker.reading(7, 1.0)
    assert marker.evidence == name
    marker.reading(8, 2.0)
    assert marker.evidence == "", "that was another page"


def test_a_robots_file_being_read_is_told_from_the_page():
    marker = Marker()
    marker.reading_robots(7, 1.0)
    assert (marker.suspect, marker.reading_since, marker.suspects_robots) == (7, 1.0, True)

    marker.read_robots()
    assert (marker.suspect, marker.suspects_robots) == (None, False)
    marker.reading(7, 2.0)
    assert (marker.suspect, marker.suspects_robots) == (7, False)


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0xFF])
def test_whatever_a_child_wrote_into_its_cell_can_be_read(byte):
    marker = Marker(bytearray([byte] * SIZE))
    since, alive = marker.reading_since, marker.alive_at

    assert since is None or isfinite(since)
    assert isfinite(alive)
    assert isinstance(marker.evidence, str)
    assert marker.suspect is None or -(2**63) <= marker.suspect < 2**63


@pytest.mark.parametrize("nonsense", [float("nan"), float("inf"), float("-inf")])
def test_a_time_that_is_none_never_looks_like_life(nonsense):
    marker = Marker()
    marker.alive(nonsense)
    marker.reading(7, nonsense)

    assert marker.alive_at == marker.alive_at != 0.0, "it stands still, so silence is noticed"
    assert (marker.suspect, marker.reading_since) == (7, None)

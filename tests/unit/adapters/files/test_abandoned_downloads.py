"""Unfinished files of processes that died are removed; those of living ones are not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trotline.adapters.files import abandoned_downloads
from trotline.adapters.files.file_store import FolderStore
from trotline.adapters.s3.file_store import S3Files
from trotline.adapters.s3.s3_url import address_of
from trotline.model.stored_file import Files

RECEIVING = """
import sys
from trotline.adapters.files.file_store import FolderStore
from trotline.model.stored_file import Files

writer = FolderStore(Files(folder=sys.argv[1])).begin()
writer.write(b"x" * 100_000)
print("received", flush=True)
sys.stdin.read()
"""


def receiving(folder: Path) -> "subprocess.Popen[bytes]":
    """Another process, in the middle of a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", RECEIVING, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"received\n"
    return process


def parts(folder: Path) -> set[str]:
    return {path.name for path in folder.glob(".*.part")}


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


def test_the_next_process_removes_what_a_killed_one_left_and_nothing_of_a_living_one(tmp_path: Path) -> None:
    killed, living = receiving(tmp_path), receiving(tmp_path)
    both = parts(tmp_path)
    assert len(both) == 2
    end(killed)
    try:
        writer = FolderStore(Files(folder=str(tmp_path))).begin()
        left = parts(tmp_path) & both
        assert len(left) == 1
        writer.drop()
    finally:
        end(living)
    FolderStore(Files(folder=str(tmp_path))).begin().drop()
    assert parts(tmp_path) == set()


def test_files_on_their_way_to_s3_are_removed_from_the_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    end(receiving(tmp_path))
    assert parts(tmp_path)
    address = address_of("s3://bucket/files?endpoint=http://127.0.0.1:1")
    S3Files(Files(folder="s3://bucket/files"), address).begin().drop()
    assert parts(tmp_path) == set()


def test_files_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "..0123456789abcdef.part").touch()
    (tmp_path / ".0123456789abcdef.part").touch()
    (tmp_path / "target").touch()
    (tmp_path / ".trotline-x-0123456789abcdef.part").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / ".trotline-x-0123456789abcdee.part")
    (tmp_path / ".trotline-x-0123456789abcdea.part").mkdir()
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(abandoned_downloads, "_HERE", "x")
    assert abandoned_downloads.remove_abandoned(tmp_path) == 0
    assert sorted(tmp_path.iterdir()) == before


def test_files_of_another_machine_are_left_alone_for_a_day(tmp_path: Path) -> None:
    part = tmp_path / ".trotline-another-machine-0123456789abcdef.part"
    part.touch()
    assert abandoned_downloads.remove_abandoned(tmp_path) == 0
    os.utime(part, (1.0, 1.0))
    assert abandoned_downloads.remove_abandoned(tmp_path) == 1


def test_a_folder_that_cannot_be_read_is_no_trouble(tmp_path: Path) -> None:
    assert abandoned_downloads.remove_abandoned(tmp_path / "nowhere") == 0

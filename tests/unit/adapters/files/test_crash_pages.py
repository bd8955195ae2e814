"""Bodies of pages that brought a worker down: kept whole, by content, in bounded room."""

import hashlib
import os
from pathlib import Path

from trotline.adapters.files.crash_pages import EvidenceFolder


def kept(folder: Path) -> set[bytes]:
    return {file.read_bytes() for file in folder.iterdir()}


def keep_in_turn(folder: EvidenceFolder, place: Path, *bodies: bytes) -> None:
    """Each a second younger than the one before."""
    for age, body in enumerate(bodies):
        name = folder.keep(body)
        os.utime(place / f"{name}.body", (age, age))


def test_the_name_is_the_hash_of_the_content(tmp_path: Path) -> None:
    folder = EvidenceFolder(tmp_path / "new" / "evidence")
    name = folder.keep(b"../../etc/passwd")

    assert name == hashlib.sha256(b"../../etc/passwd").hexdigest()[:32]
    assert (tmp_path / "new" / "evidence" / f"{name}.body").read_bytes() == b"../../etc/passwd"


def test_the_same_body_again_is_one_file(tmp_path: Path) -> None:
    folder = EvidenceFolder(tmp_path)
    assert folder.keep(b"a") == folder.keep(b"a")
    assert len(list(tmp_path.iterdir())) == 1


def test_the_oldest_goes_when_there_are_too_many(tmp_path: Path) -> None:
    keep_in_turn(EvidenceFolder(tmp_path, files=3), tmp_path, b"1", b"2", b"3", b"4", b"5")
    assert kept(tmp_path) == {b"3", b"4", b"5"}


def test_the_oldest_go_when_they_are_too_large(tmp_path: Path) -> None:
    keep_in_turn(EvidenceFolder(tmp_path, total=10), tmp_path, b"aaaa", b"bbbb", b"cccccccc")
    assert kept(tmp_path) == {b"cccccccc"}


def test_a_folder_that_cannot_be_written_is_a_warning_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert EvidenceFolder(tmp_path / "file" / "evidence").keep(b"a") == ""


def test_b64_a_link_in_the_place_of_evidence_is_not_written_through(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "evidence"
    victim.write_text("mine")
    folder.mkdir()
    name = hashlib.sha256(b"body").hexdigest()[:32]
    (folder / f"{name}.{os.getpid()}.part").symlink_to(victim)
    (folder / f"{name}.body").symlink_to(victim)

    assert EvidenceFolder(folder).keep(b"body") == name

    assert victim.read_text() == "mine"
    assert (folder / f"{name}.body").read_bytes() == b"body"
    assert not (folder / f"{name}.body").is_symlink()


def test_b64_making_room_takes_links_away_and_not_what_they_lead_to(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "evidence"
    victim.write_bytes(b"x" * 1000)
    folder.mkdir()
    (folder / "a.body").symlink_to(victim)
    (folder / "gone.body").symlink_to(tmp_path / "nothing")

    assert EvidenceFolder(folder, files=1).keep(b"new")

    assert victim.exists()
    assert [file.is_symlink() for file in folder.iterdir()] == [False]

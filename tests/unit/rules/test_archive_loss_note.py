"""Pages that are gone from the archive, as the note of a job has them."""

from typing import Any

import pytest

from trotline.model.job import Progress
from trotline.model.note import Note
from trotline.rules.archive_loss_note import ArchiveNote, after_a_death, decode, encode, more, of_job


def test_losses_of_workers_add_up() -> None:
    first = more(None, 3, "file:pages")
    both = more(decode(Note(encode(first), 1)), 4, "file:pages")
    assert both == ArchiveNote(lost=7, place="file:pages")
    assert both.sentence.startswith("7 pages of this job were written to file:pages and are gone: their files were")
    assert "1 page of this job was written to x and is gone" in ArchiveNote(lost=1, place="x").sentence


def progress(**more: Any) -> Progress:
    return Progress(**{"waiting": 0, "leased": 0, "done": 9, "dead": 0, "finished_at": 1.0, **more})


def test_the_number_is_a_lower_bound_after_a_death_and_before_the_end() -> None:
    whole = Note(encode(ArchiveNote(lost=3, place="x")), 1)
    found = of_job(whole, progress())
    assert found is not None and found.sentence.startswith("3 pages")
    died = Note(encode(more(after_a_death(None, "x"), 3, "x")), 1)
    for note, job in (
        (died, progress()),
        (whole, progress(tallies={"rescued": 1})),
        (whole, progress(finished_at=None)),
    ):
        found = of_job(note, job)
        assert found is not None and found.sentence.startswith("at least 3 pages of this job were written")


def test_a_death_without_a_loss_is_not_shown() -> None:
    assert of_job(Note(encode(after_a_death(None, "x")), 1), progress()) is None


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b'{"lost": "many"}', b'{"lost": -1}', b'{"lost": 0}'])
def test_a_note_that_another_program_damaged_says_nothing(data: bytes) -> None:
    assert of_job(Note(data, 1), progress()) is None
    assert of_job(None, progress()) is None

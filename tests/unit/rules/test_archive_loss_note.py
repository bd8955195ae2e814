"""Pages that are gone from the archive, as the note of a job has them."""

import pytest

from trotline.model.note import Note
from trotline.rules.archive_loss_note import ArchiveNote, decode, encode, more


def test_losses_of_workers_add_up() -> None:
    first = more(None, 3, "file:pages")
    both = more(decode(Note(encode(first), 1)), 4, "file:pages")
    assert both == ArchiveNote(lost=7, place="file:pages")
    assert both.sentence.startswith("7 pages of this job were written to file:pages and are gone: their files were")
    assert "1 page of this job was written to x and is gone" in ArchiveNote(lost=1, place="x").sentence


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b'{"lost": "many"}', b'{"lost": -1}', b'{"lost": 0}'])
def test_a_note_that_another_program_damaged_says_nothing(data: bytes) -> None:
    assert decode(Note(data, 1)) is None
    assert decode(None) is None

"""What of a spider's pages is archived."""

import pytest

from trotline.rules.archive_choice import ArchiveChoice


@pytest.mark.parametrize(
    ("text", "verdict", "kept"),
    [
        ("all", "ok", True), ("all", "blocked", True), ("ok", "ok", True), ("ok", "moved", True),
        ("ok", "gone", False), ("failures", "gone", True), ("failures", "ok", False), ("none", "ok", False),
        ("100%", "ok", True), ("ok 100%", "gone", False),
    ],
)  # fmt: skip
def test_a_choice_keeps_what_it_says(text, verdict, kept):
    why = ArchiveChoice.parse(text).why_not(verdict, 17)
    assert (why == "") is kept
    assert kept or why.startswith("not archived: ")


def test_a_sample_is_the_same_every_time_and_about_as_large_as_asked():
    choice = ArchiveChoice.parse("10%")
    kept = [number for number in range(100_000) if not choice.why_not("ok", number * 7919)]
    assert 9_000 < len(kept) < 11_000
    assert choice.why_not("ok", 99_999) == "not archived: a sample of 10% does not have it"


@pytest.mark.parametrize("odd", ["", "some", "ok ok", "none 10%", "101%", "10", 7, None, "10% ok"])
def test_odd_choices_are_refused(odd):
    with pytest.raises(ValueError, match="is none of"):
        ArchiveChoice.parse(odd)

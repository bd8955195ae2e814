"""The docs are plain technical English; the project's own words have their common names in the glossary."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, prose

GLOSSARY = (DOCS / "glossary.md").read_text()
ROWS = re.findall(r"^\| \*\*(.+?)\*\* \| (.*?) \| (.+) \|$", GLOSSARY, re.M)
VAGUE = re.compile(r"\b(whoever|nobody|somebody|anybody|everybody|misdeeds?|deeds?|strangers?|nursery)\b", re.I)
"""Words that leave out who does it, or that no engineer would search for."""
PLAIN = [
    page for page in PAGES if page.parent == ROOT or (page.is_relative_to(DOCS) and page.parent.name != "decisions")
]
"""Decisions are history, and stay as they were written."""


def sentences(page: Path) -> str:
    """The prose without inline code: what the program prints is quoted as it is."""
    return re.sub(r"`[^`]*`", "", prose(page))


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_who_does_what(page: Path) -> None:
    assert VAGUE.findall(sentences(page)) == []


def test_every_word_of_the_glossary_has_its_common_name() -> None:
    assert len(ROWS) > 40
    assert [word for word, common, _ in ROWS if not common.strip()] == []


@pytest.mark.parametrize(
    ("word", "common"),
    [
        ("Graveyard", "dead-letter queue"),
        ("Lane", "rate-limit bucket"),
        ("Settle", "acknowledge"),
        ("Rescue", "redelivery of a dead worker's tasks"),
        ("Gate", "URL filter and normaliser"),
        ("Pace", "rate limit"),
    ],
)
def test_a_word_that_readers_look_up_is_found_under_its_common_name(word: str, common: str) -> None:
    [found] = [name for words, name, _ in ROWS if word in words.split(", ")]
    assert common in found

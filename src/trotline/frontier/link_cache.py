"""A bounded cache of links that were admitted or refused before."""

from collections.abc import Sequence

SIZE = 200_000
"""Hashes in one generation: one for a link's text, one for its fingerprint."""
REFUSALS = 20_000
CHARACTERS = 2_000_000
"""Total length of the refused texts in one generation: bounds the memory of long URLs."""


class _Generation:
    __slots__ = ("characters", "numbers", "refused")

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.refused: dict[str, str] = {}
        self.characters = 0


class KnownLinks:
    """An approximate LRU cache of two generations: when the young one is full, it replaces the old one.

    A hit in the old generation moves the entry to the young one, so a link that every page has stays cached.
    Eviction is harmless: the frontier answers "duplicate".

    A text is stored as its 64-bit hash (Python's own, salted per process, so that a site cannot prepare a collision):
    half the memory of the text, and no more often wrong than the fingerprint that decides identity.
    """

    def __init__(self, size: int = SIZE, refusals: int = REFUSALS, characters: int = CHARACTERS) -> None:
        self._size = size
        self._refusals = refusals
        self._characters = characters
        self._young = _Generation()
        self._old = _Generation()

    def unknown(self, route: str, texts: Sequence[str]) -> list[str]:
        """Those of `texts` that are not cached for this route, in their order."""
        young, salt = self._young.numbers, hash(route)
        rest = [text for text in texts if hash(text) ^ salt not in young]
        return [text for text in rest if not self._in_old(hash(text) ^ salt)] if rest and self._old.numbers else rest

    def has_text(self, route: str, text: str) -> bool:
        return (hash(text) ^ hash(route)) in self

    def __contains__(self, number: int) -> bool:
        return number in self._young.numbers or self._in_old(number)

    def add_text(self, route: str, text: str) -> None:
        self.add_fingerprint(hash(text) ^ hash(route))

    def add_fingerprint(self, number: int) -> None:
        if len(self._young.numbers) >= self._size:
            self._rotate()
        self._young.numbers.add(number)

    def refusal(self, text: str) -> str | None:
        """Why this text was refused, if it was."""
        why = self._young.refused.get(text)
        if why is None:
            why = self._old.refused.get(text)
            if why is not None:
                self.add_refusal(text, why)
        return why

    def add_refusal(self, text: str, why: str) -> None:
        young = self._young
        if len(young.refused) >= self._refusals or young.characters + len(text) > self._characters:
            self._rotate()
        self._young.refused[text] = why
        self._young.characters += len(text)

    def _in_old(self, number: int) -> bool:
        if number not in self._old.numbers:
            return False
        self.add_fingerprint(number)
        return True

    def _rotate(self) -> None:
        self._old, self._young = self._young, _Generation()

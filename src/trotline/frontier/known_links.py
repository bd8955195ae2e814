"""Links that need no second look, in bounded memory."""

from collections.abc import Sequence

SIZE = 200_000
"""Numbers of one generation: a link's text and its fingerprint are one each."""
REFUSALS = 20_000
CHARACTERS = 2_000_000
"""Refused texts kept in one generation: long URLs must not make a small cache a big one."""


class _Generation:
    __slots__ = ("characters", "numbers", "refused")

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.refused: dict[str, str] = {}
        self.characters = 0


class Known:
    """Two generations: when the young one is full it becomes the old one, and the old one is forgotten.

    What is met in the old generation moves to the young one, so a link that stands on every page stays known.
    Forgetting is harmless: the frontier answers "duplicate".

    A text is kept as its 64-bit hash (Python's own, salted anew in every process, so that no site can prepare a
    collision): half the memory of the text, and no more often wrong than the fingerprint that decides identity.
    """

    def __init__(self, size: int = SIZE, refusals: int = REFUSALS, characters: int = CHARACTERS) -> None:
        self._size = size
        self._refusals = refusals
        self._characters = characters
        self._young = _Generation()
        self._old = _Generation()

    def unknown(self, route: str, texts: Sequence[str]) -> list[str]:
        """Those of `texts` that are not known for this route, in their order."""
        young, salt = self._young.numbers, hash(route)
        rest = [text for text in texts if hash(text) ^ salt not in young]
        return [text for text in rest if not self._still(hash(text) ^ salt)] if rest and self._old.numbers else rest

    def has_text(self, route: str, text: str) -> bool:
        return (hash(text) ^ hash(route)) in self

    def __contains__(self, number: int) -> bool:
        return number in self._young.numbers or self._still(number)

    def add_text(self, route: str, text: str) -> None:
        self.add_fingerprint(hash(text) ^ hash(route))

    def add_fingerprint(self, number: int) -> None:
        if len(self._young.numbers) >= self._size:
            self._turn()
        self._young.numbers.add(number)

    def refusal(self, text: str) -> str | None:
        """Why this text was refused for good, if it was."""
        why = self._young.refused.get(text)
        if why is None:
            why = self._old.refused.get(text)
            if why is not None:
                self.add_refusal(text, why)
        return why

    def add_refusal(self, text: str, why: str) -> None:
        young = self._young
        if len(young.refused) >= self._refusals or young.characters + len(text) > self._characters:
            self._turn()
        self._young.refused[text] = why
        self._young.characters += len(text)

    def _still(self, number: int) -> bool:
        if number not in self._old.numbers:
            return False
        self.add_fingerprint(number)
        return True

    def _turn(self) -> None:
        self._old, self._young = self._young, _Generation()

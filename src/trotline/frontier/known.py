"""Links that need no second look, in bounded memory."""

from collections.abc import Sequence

SIZE = 50_000
"""Entries of one generation, of each kind."""
CHARACTERS = 4_000_000
"""Text kept in one generation: long URLs must not make a small cache a big one."""


class _Generation:
    __slots__ = ("characters", "count", "fingerprints", "refused", "texts")

    def __init__(self) -> None:
        self.texts: dict[str, set[str]] = {}
        self.refused: dict[str, str] = {}
        self.fingerprints: set[int] = set()
        self.count = 0
        self.characters = 0


class Known:
    """Two generations: when the young one is full it becomes the old one, and the old one is forgotten.

    What is met in the old generation moves to the young one, so a link that stands on every page stays known.
    Forgetting is harmless: the frontier answers "duplicate".
    """

    def __init__(self, size: int = SIZE, characters: int = CHARACTERS) -> None:
        self._size = size
        self._characters = characters
        self._young = _Generation()
        self._old = _Generation()

    def unknown(self, route: str, texts: Sequence[str]) -> list[str]:
        """Those of `texts` that are not known for this route, in their order."""
        young = self._young.texts.get(route)
        rest = [text for text in texts if text not in young] if young else list(texts)
        return [text for text in rest if not self._still(route, text)] if rest and route in self._old.texts else rest

    def has_text(self, route: str, text: str) -> bool:
        young = self._young.texts.get(route)
        return (young is not None and text in young) or self._still(route, text)

    def refusal(self, text: str) -> str | None:
        """Why this text was refused for good, if it was."""
        why = self._young.refused.get(text)
        if why is None:
            why = self._old.refused.get(text)
            if why is not None:
                self.add_refusal(text, why)
        return why

    def __contains__(self, fingerprint: int) -> bool:
        if fingerprint in self._young.fingerprints:
            return True
        if fingerprint not in self._old.fingerprints:
            return False
        self.add_fingerprint(fingerprint)
        return True

    def add_text(self, route: str, text: str) -> None:
        generation = self._room(len(text))
        generation.texts.setdefault(route, set()).add(text)

    def add_refusal(self, text: str, why: str) -> None:
        self._room(len(text)).refused[text] = why

    def add_fingerprint(self, fingerprint: int) -> None:
        if len(self._young.fingerprints) >= self._size:
            self._turn()
        self._young.fingerprints.add(fingerprint)

    def _still(self, route: str, text: str) -> bool:
        old = self._old.texts.get(route)
        if old is None or text not in old:
            return False
        self.add_text(route, text)
        return True

    def _room(self, characters: int) -> _Generation:
        young = self._young
        if young.count >= self._size or young.characters + characters > self._characters:
            young = self._turn()
        young.count += 1
        young.characters += characters
        return young

    def _turn(self) -> _Generation:
        self._old, self._young = self._young, _Generation()
        return self._young

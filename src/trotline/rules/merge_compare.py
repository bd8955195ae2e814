"""Compares the texts of sources, each once."""

from collections.abc import Iterable

import msgspec

from trotline.model.merge import Link, MergeRule, Source
from trotline.rules.merge_keys import ids_of, profile_of
from trotline.rules.merge_score import are_unlike, similarity
from trotline.rules.merge_text import Profile


class Comparison:
    def __init__(self, rule: MergeRule) -> None:
        self._rule = rule
        self._sources: dict[int, Source] = {}
        self._profiles: dict[int, Profile | None] = {}
        self._ids: dict[int, set[str]] = {}
        self.pairs = 0
        """Compared so far;"""
        self.unlike = 0
        """and of those, texts with so many different words that spellings were not looked at."""

    def add(self, source: Source, profile: Profile | None = None) -> None:
        """`profile`: if it is known already."""
        self._sources[source.id] = source
        if profile is not None:
            self._profiles[source.id] = profile

    def links(self, pairs: Iterable[tuple[int, int]]) -> list[Link]:
        """Of those that are similar enough, if only for review."""
        found = []
        for a, b in pairs:
            score = self.score(a, b)
            if score >= self._rule.review_from:
                found.append(Link(a, b, score))
        return found

    def score(self, a: int, b: int) -> float:
        self.pairs += 1
        one, other = self._profile(a), self._profile(b)
        if one is None or other is None:
            return 0.0
        self.unlike += are_unlike(one, other)
        score = similarity(one, other, self._rule.merge_from)
        if score >= self._rule.merge_from and "ids" in self._rule.by and self._other_ids(a, b):
            return self._rule.merge_from - 0.001
        return round(score, 4)

    def _profile(self, one: int) -> Profile | None:
        if one not in self._profiles:
            self._profiles[one] = profile_of(self._sources[one], self._rule)
        return self._profiles[one]

    def _other_ids(self, a: int, b: int) -> bool:
        """Both have global identifiers, and none in common: people decide."""
        ours, theirs = self._ids_of(a), self._ids_of(b)
        return bool(ours) and bool(theirs) and ours.isdisjoint(theirs)

    def _ids_of(self, one: int) -> set[str]:
        if one not in self._ids:
            self._ids[one] = ids_of(msgspec.json.decode(self._sources[one].data))
        return self._ids[one]

"""Changed sources, and the groups of sources that share their keys, before and after the change."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from trotline.model.merge import MergeRule, Source
from trotline.rules.merge_keys import ALIKE, Keys, kind_of_key
from trotline.rules.merge_text import Profile


class Groups:
    def __init__(self, rule: MergeRule, gone: Iterable[int]) -> None:
        self._rule = rule
        self.gone = set(gone)
        self.touched: dict[int, Source] = {}
        self.texts: dict[int, Profile] = {}
        self.cut = 0
        """Touched sources of whose text only the beginning is compared."""
        self.keys: dict[int, tuple[int, ...]] = {}
        """Of each touched source, now."""
        self._removed: Counter[int] = Counter()
        """Key -> how many touched or gone sources had it in the store."""
        self._first: dict[int, int] = {}
        """Key -> the first touched source that has it now."""
        self._added: dict[int, list[int]] = {}
        """Key -> the touched sources that have it now, where they are several: most keys are of one."""
        self._asked: set[int] = set()
        self._counts: dict[int, int] = {}
        """Key -> how many have it in the store; without keys that only one source has ever had."""
        self._stored: dict[int, list[int]] = {}
        self.crowded: frozenset[int] = frozenset()
        """Keys that too many have after the change: not used."""

    def touch(self, source: Source, found: Keys) -> None:
        one = source.id
        self.touched[one] = source
        self.keys[one] = found.blocks
        if found.profile is not None:
            self.texts[one] = found.profile
        self.cut += found.was_cut
        for key in found.blocks:
            first = self._first.setdefault(key, one)
            if first != one:
                self._added.setdefault(key, [first]).append(one)

    def had(self, old_keys: Mapping[int, list[int]]) -> None:
        """The keys of touched and gone sources in the store."""
        for keys in old_keys.values():
            self._removed.update(keys)

    def uncounted(self) -> set[int]:
        return (self._first.keys() | self._removed.keys()) - self._asked

    def counted(self, asked: set[int], found: Mapping[int, int]) -> None:
        self._asked |= asked
        self._counts.update(found)
        # Most keys are new, and of one source: they connect nothing.
        for key in self._added:
            self._counts.setdefault(key, 0)

    def concerns(self, key: int) -> bool:
        return key in self._asked

    def listed(self, members: Mapping[int, list[int]]) -> None:
        self._stored.update(members)

    def crossing(self) -> frozenset[int]:
        """Keys that were used and are too crowded now, or the other way round."""
        few = min(self._rule.most, self._rule.most_alike)
        large = [key for key, before in self._counts.items() if before + len(self._now_in(key)) > few]
        before = frozenset(key for key in large if self._full(key, self._counts[key]))
        self.crowded = frozenset(key for key in large if self._full(key, self._now(key)))
        return before ^ self.crowded

    def to_list(self) -> list[int]:
        """Keys whose other members must be known."""
        return [
            key
            for key, before in self._counts.items()
            if before and key not in self._stored and key not in self.crowded
        ]

    def members_of(self, keys: Iterable[int]) -> set[int]:
        """In the store."""
        return {member for key in keys for member in self._stored.get(key, ())}

    def exact(self) -> Iterator[tuple[int, list[int]]]:
        """Exact keys, and who has them after the change."""
        for key in self._counts:
            if kind_of_key(key) != ALIKE and key not in self.crowded:
                members = [*self._kept(key), *self._now_in(key)]
                if len(members) > 1:
                    yield key, members

    def former_mates(self) -> set[int]:
        """Who shared an exact key with a touched or gone source before."""
        return self.members_of(key for key in self._removed if kind_of_key(key) != ALIKE)

    def candidates(self, site_of: Mapping[int, str]) -> set[tuple[int, int]]:
        """Pairs to compare: at least one of them touched, and of two sites unless the rule compares within one."""
        pairs: set[tuple[int, int]] = set()
        paired: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        for key in self._counts:
            if kind_of_key(key) != ALIKE or key in self.crowded:
                continue
            ours, theirs = tuple(self._now_in(key)), tuple(one for one in self._kept(key) if one in site_of)
            if len(ours) + len(theirs) > 1 and (ours, theirs) not in paired:
                # Equal texts share all of their keys.
                paired.add((ours, theirs))
                added, kept = ([(one, site_of[one]) for one in some] for some in (ours, theirs))
                self._pair_up(added, kept, pairs)
        return pairs

    def _pair_up(
        self, added: Sequence[tuple[int, str]], kept: Sequence[tuple[int, str]], pairs: set[tuple[int, int]]
    ) -> None:
        within = self._rule.within_site
        for place, (one, site) in enumerate(added, start=1):
            for some in (added[place:], kept):
                for other, its_site in some:
                    if within or its_site != site:
                        pairs.add((one, other) if one < other else (other, one))

    def others(self) -> set[int]:
        """Sources in the store that touched ones may be compared with."""
        alike = (key for key in self._stored if kind_of_key(key) == ALIKE and key not in self.crowded)
        return self.members_of(alike) - self.touched.keys() - self.gone

    def _now(self, key: int) -> int:
        return self._counts[key] - self._removed.get(key, 0) + len(self._now_in(key))

    def _full(self, key: int, number: int) -> bool:
        return number > (self._rule.most_alike if kind_of_key(key) == ALIKE else self._rule.most)

    def _now_in(self, key: int) -> Sequence[int]:
        """The touched sources that have it."""
        several = self._added.get(key)
        if several is not None:
            return several
        return (self._first[key],) if key in self._first else ()

    def _kept(self, key: int) -> list[int]:
        """The others that have it."""
        stored = self._stored.get(key)
        return [one for one in stored if one not in self.touched and one not in self.gone] if stored else []

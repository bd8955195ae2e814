"""Which sources are one thing: a pure function of the sources, their keys, their links and what people decided.

The order in which they were found has no part in it: everything is sorted before it counts, strongest evidence first
(people, exact keys, similar texts). What people called different never ends up in one thing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice, product

import msgspec

from trotline.model.merge import Link, MergeRule, ReviewDecision, Source
from trotline.rules.merge_keys import PAGE, kind_of_key

_MOST_PAIRS = 50
"""Pairs of sources that are compared before two groups of them are joined by a similar text."""

Score = Callable[[int, int], float]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """About sources that may be connected."""

    sources: Mapping[int, Source]
    groups: Mapping[int, Sequence[int]]
    """Exact key -> the sources that share it."""
    links: Iterable[Link]
    decisions: Iterable[ReviewDecision]


def clusters(evidence: Evidence, rule: MergeRule, score: Score) -> list[list[int]]:
    """The sources of each thing, sorted; `score` compares two of them."""
    sets = _Sets(evidence.sources, [(one.a, one.b) for one in evidence.decisions if not one.same])
    for decision in sorted(one for one in evidence.decisions if one.same):
        if decision.a in evidence.sources and decision.b in evidence.sources:
            sets.join(decision.a, decision.b)
    for key, members in sorted(evidence.groups.items()):
        if usable(key, [evidence.sources[one] for one in members], rule):
            _join_group(sets, sorted(members))
    strong = [link for link in evidence.links if link.score >= rule.merge_from]
    for link in sorted(_unambiguous(strong, evidence.sources, rule), key=lambda one: (-one.score, one.a, one.b)):
        if sets.root(link.a) != sets.root(link.b) and _fits(sets, link, evidence, rule, score):
            sets.join(link.a, link.b)
    return sets.groups()


def usable(key: int, members: Sequence[Source], rule: MergeRule) -> bool:
    """Does the key say that they are one thing?"""
    if len(members) < 2 or len(members) > rule.most:
        return False
    if kind_of_key(key) != PAGE:
        return True
    # A page with several records of a kind is a list: its URL identifies none of them.
    return len({(source.site, source.url) for source in members}) == len(members)


def _join_group(sets: "_Sets", members: Sequence[int]) -> None:
    """Into one, or as few as people's decisions allow."""
    firsts: list[int] = []
    for member in members:
        if not any(sets.join(first, member) for first in firsts):
            firsts.append(member)


def _unambiguous(links: Sequence[Link], sources: Mapping[int, Source], rule: MergeRule) -> Iterator[Link]:
    """Without links of a source that is as similar to two sources of one site: either may be the wrong one."""
    if rule.within_site:
        yield from links
        return
    best: dict[tuple[int, str], tuple[float, int]] = {}
    for link in links:
        for one, other in ((link.a, link.b), (link.b, link.a)):
            place = (one, sources[other].site)
            score, count = best.get(place, (0.0, 0))
            if link.score > score:
                best[place] = (link.score, 1)
            elif link.score == score:
                best[place] = (score, count + 1)
    for link in links:
        ends = (best[link.a, sources[link.b].site], best[link.b, sources[link.a].site])
        if not any(link.score == score and count > 1 for score, count in ends):
            yield link


def _fits(sets: "_Sets", link: Link, evidence: Evidence, rule: MergeRule, score: Score) -> bool:
    """May a similar text join these two groups? Not if one of their pairs is clearly different, or of one site."""
    ours, theirs = sets.members(link.a), sets.members(link.b)
    if not rule.within_site:
        sites = {evidence.sources[one].site for one in ours}
        if any(evidence.sources[one].site in sites for one in theirs):
            return False
    # The smallest of each side: groups may have thousands, and all of their pairs are never made.
    pairs = product(nsmallest(_MOST_PAIRS + 1, ours), nsmallest(_MOST_PAIRS + 1, theirs))
    some = islice((pair for pair in pairs if pair != (link.a, link.b)), _MOST_PAIRS)
    return all(score(a, b) >= rule.review_from for a, b in some)


class _Sets:
    """Disjoint sets, of which some may not be joined."""

    def __init__(self, members: Iterable[int], apart: Iterable[tuple[int, int]]) -> None:
        self._root = {member: member for member in members}
        self._members = {member: [member] for member in self._root}
        self._apart: dict[int, set[int]] = {}
        for a, b in apart:
            self._apart.setdefault(a, set()).add(b)
            self._apart.setdefault(b, set()).add(a)

    def root(self, member: int) -> int:
        return self._root[member]

    def members(self, member: int) -> list[int]:
        return self._members[self._root[member]]

    def join(self, a: int, b: int) -> bool:
        """False: people decided that some of them are different."""
        kept, moved = self._root[a], self._root[b]
        if kept == moved:
            return True
        if self._apart and self._forbidden(self._members[kept], self._members[moved]):
            return False
        if len(self._members[kept]) < len(self._members[moved]):
            kept, moved = moved, kept
        for member in self._members[moved]:
            self._root[member] = kept
        self._members[kept] += self._members.pop(moved)
        return True

    def _forbidden(self, ours: Sequence[int], theirs: Sequence[int]) -> bool:
        others = set(theirs)
        return any(not others.isdisjoint(self._apart.get(one, ())) for one in ours)

    def groups(self) -> list[list[int]]:
        return sorted(sorted(members) for members in self._members.values())

"""What the counters of a job say: failed attempts, blocks, retries, duplicates."""

from collections import Counter

import msgspec

from trotline.model.job import Progress
from trotline.model.verdict import Kind
from trotline.rules import chain_failures

_FAILED = frozenset({"retry", "dead"})
_AGAIN = frozenset({"retry", "snooze", "dead"})
LISTING = "listing pages"
"""The counter of pages whose route only leads to others, until a worker meets its first record."""
_ENDED = frozenset({"ok", "dropped", "dead"})
_UNVISITED = (
    "dead: cancelled",
    chain_failures.TALLY,
    "dead: unreachable: lane given up",
    "dead: throttled: lane given up",
)
"""How the counters of tasks begin that were buried while they waited: by an operator, with their lane or chain."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    attempts: int = 0
    """Visits that were settled with a result: done, dead, retried, or put off by the site (429)."""
    failed: int = 0
    """Attempts that ended in a retry or in the graveyard."""
    retries: int = 0
    blocked: int = 0
    throttled: int = 0
    records: int = 0
    rejected: int = 0
    known_links: int = 0
    """Links on visited pages that were admitted before."""
    refused_links: int = 0
    """By a limit, a trap, the scope."""
    children: int = 0
    """Tasks that are no duplicates."""

    @property
    def failed_share(self) -> float:
        return _share(self.failed, self.attempts)

    @property
    def blocked_share(self) -> float:
        return _share(self.blocked, self.attempts)

    @property
    def duplicate_share(self) -> float:
        """Of the links that were met, how many were known."""
        return _share(self.known_links, self.known_links + self.children)


def figures(progress: Progress) -> Figures:
    events: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    refused = 0
    for name, count in progress.tallies.items():
        event, _, reason = name.partition(": ")
        if event == "links refused":
            refused += count
        elif event in _AGAIN and not name.startswith(_UNVISITED):
            events[event] += count
            verdicts[reason.partition(": ")[0]] += count
    return Figures(
        attempts=visited(progress) + events["retry"] + verdicts[Kind.THROTTLED],
        failed=sum(events[event] for event in _FAILED),
        retries=events["retry"],
        blocked=verdicts[Kind.BLOCKED],
        throttled=verdicts[Kind.THROTTLED],
        records=progress.tallies.get("records", 0),
        rejected=progress.tallies.get("records rejected", 0),
        known_links=progress.tallies.get("links known", 0),
        refused_links=refused,
        children=progress.admitted,
    )


def visited(progress: Progress) -> int:
    """Ended tasks without those that were buried while they waited.

    Counters of burials stay when tasks are revived: then the visits themselves are the better count.
    """
    counts = {name: count for name, count in progress.tallies.items() if name.partition(": ")[0] in _ENDED}
    buried = sum(count for name, count in counts.items() if name.startswith(_UNVISITED))
    return max(0, progress.ended - buried, min(progress.ended, sum(counts.values()) - buried))


def signatures(progress: Progress) -> list[tuple[str, int]]:
    """What went wrong, by cause: "retry: 503", "dead: handler: KeyError: 'price'"; the most frequent first."""
    found = [(name, count) for name, count in progress.tallies.items() if name.partition(": ")[0] in _FAILED and count]
    return sorted(found, key=lambda each: (-each[1], each[0]))


def _share(part: int, whole: int) -> float:
    return min(1.0, part / whole) if whole else 0.0

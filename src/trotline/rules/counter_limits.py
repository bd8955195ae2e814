"""Bounds the number of counters of a job.

Reasons quote host names and messages of handlers: a job with a million hosts must not have a million counters.
"""

from collections.abc import Mapping

from trotline.model.verdict import Kind

MOST_NAMES = 500
"""Counters of one job. Beyond them a new one is merged into a group (`folded`)."""
NEVER_FOLDED = "links refused: "
"""A fixed set of names, as are names without a reason ("records"): never merged, as the summary uses them."""
VERDICTS = frozenset(kind.value for kind in Kind) | {"handler"}


MOST_REJECTS = 10_000
"""Rejected records of one job that are stored; the others are counted."""
NOT_KEPT = "records rejected and not kept"
"""Their counter."""


def bad_record(why: str) -> str:
    """The reason of a rejected record, in the graveyard."""
    return f"bad record: {why}"


def bounded(counts: Mapping[str, int], most: int = MOST_NAMES) -> dict[str, int]:
    """The counts under about `most` names: the largest keep theirs, the others are merged."""
    ranked = sorted(counts.items(), key=lambda each: -each[1])
    kept = dict(ranked[:most])
    for name, count in ranked[most:]:
        like = folded(name)
        kept[like] = kept.get(like, 0) + count
    return kept


def folded(name: str) -> str:
    """The name of the merged counter: event and verdict, without the rest of the reason."""
    what, _, reason = name.partition(": ")
    if not reason or name.startswith(NEVER_FOLDED):
        return name
    verdict = reason.partition(": ")[0]
    return f"{what}: {verdict}: others" if verdict in VERDICTS else f"{what}: others"

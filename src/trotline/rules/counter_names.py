"""Names under which things are counted: few enough to be labels, whatever sites and handlers say.

Reasons quote hosts, and messages of handlers quote anything. A job of a million hosts must not have a million counters.
"""

from collections.abc import Mapping

from trotline.model.verdict import Kind

MOST_NAMES = 500
"""Names of one job. Beyond them, a new one is counted with its like."""
NEVER_FOLDED = "links refused: "
"""Names that begin so are a few of our own, and so are those without a reason ("records"). They are never folded: how a
job ended is read from them."""
VERDICTS = frozenset(kind.value for kind in Kind) | {"handler"}


MOST_REJECTS = 10_000
"""Records of one job that failed validation and are kept; the others are counted."""
NOT_KEPT = "records rejected and not kept"
"""The name under which those are."""


def bad_record(why: str) -> str:
    """The reason by which a record that failed validation is found again."""
    return f"bad record: {why}"


def bounded(counts: Mapping[str, int], most: int = MOST_NAMES) -> dict[str, int]:
    """The same counts under about so many names: the largest keep theirs, the others are counted with their like."""
    ranked = sorted(counts.items(), key=lambda each: -each[1])
    kept = dict(ranked[:most])
    for name, count in ranked[most:]:
        like = folded(name)
        kept[like] = kept.get(like, 0) + count
    return kept


def folded(name: str) -> str:
    """The name to count under when there are too many: what happened, and the verdict, but no more of the reason."""
    what, _, reason = name.partition(": ")
    if not reason or name.startswith(NEVER_FOLDED):
        return name
    verdict = reason.partition(": ")[0]
    return f"{what}: {verdict}: others" if verdict in VERDICTS else f"{what}: others"

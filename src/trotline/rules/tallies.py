"""Names under which things are counted: few enough to be labels, whatever sites and handlers say.

Reasons quote hosts, and messages of handlers quote anything. A job of a million hosts must not have a million counters.
"""

from trotline.model.verdict import Kind

MOST_NAMES = 500
"""Names of one job. Beyond them, a new one is counted with its like."""
_KINDS = frozenset(kind.value for kind in Kind) | {"handler"}


def folded(name: str) -> str:
    """The name to count under when there are too many: what happened, and the verdict, but no more of the reason."""
    what, _, reason = name.partition(": ")
    verdict = reason.partition(": ")[0]
    return f"{what}: {verdict}: others" if verdict in _KINDS else f"{what}: others"

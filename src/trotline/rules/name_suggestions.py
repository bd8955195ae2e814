"""What to say about a name that is not there."""

import difflib
from collections.abc import Collection

_SHOWN = 10


def instead(name: str, known: Collection[str], what: str) -> str:
    """The name that was probably meant; without a similar one, those there are. `what`: they are called."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    said = f"Did you mean {near[0][:80]!r}? " if near else ""
    some = ", ".join(one[:60] for one in list(known)[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
    return f"{said}The {what} there are: {some}."

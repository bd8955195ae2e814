"""What the producers of an inbox may set, and what is shown of their entries.

Other fields reach beyond the entry's own page: a key or a site can hide or overwrite what is not theirs, a lane or a
pool has a rate limit of its own, and a request of their own acts in the name of the operator.
"""

import msgspec

from trotline.model.secret import HIDDEN
from trotline.model.task import Task
from trotline.model.task_json import seed_names

OPEN = frozenset(
    ("v", "url", "task_id", "job_type", "priority", "meta", "depth", "retry_count", "max_retries", "created_at")
)
"""Fields of an entry whose producer is not trusted."""
_KNOWN = frozenset((*Task.__struct_fields__, *seed_names()))
_SECRET = (b'"headers"', b'"body"', b'authorization"', b'"cookie"')
"""What follows one of these in an entry is not shown. In small letters."""


def check_open(text: bytes) -> None:
    """ValueError if the JSON object sets more than OPEN. Unknown fields are the codec's question."""
    try:
        given = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"is not valid JSON: {error}") from error
    if closed := sorted(_KNOWN & set(given) - OPEN):
        fields = f"field {closed[0]} is" if len(closed) == 1 else f"fields {', '.join(closed)} are"
        raise ValueError(f"the {fields} for trusted producers only: leave out, or write trust=yes in the inbox's URL")


def public_entry(entry: bytes) -> str:
    """The text of an entry, up to its headers or its body: they may contain secrets, and the entry may be damaged."""
    # bytes.lower() keeps all places.
    plain = entry.lower()
    found = [at + len(mark) for mark in _SECRET if (at := plain.find(mark)) >= 0]
    if not found:
        return entry.decode(errors="replace")
    return f"{entry[: min(found)].decode(errors='replace')}: {HIDDEN} (the rest is not shown)"

"""Which notes a frontier stores."""

from trotline.errors import FrontierError
from trotline.model.note import LARGEST_NOTE, LONGEST_NAME


def check(name: str, data: bytes) -> None:
    """Raises FrontierError for a note that no frontier stores."""
    if not 1 <= len(name) <= LONGEST_NAME:
        raise FrontierError(
            f"{name[:20]!r} is not the name of a note: it has {len(name)} characters",
            hint=f"Use 1 to {LONGEST_NAME} characters.",
        )
    if len(data) > LARGEST_NOTE:
        raise FrontierError(
            f"the note {name!r} has {len(data):,} bytes, and the limit is {LARGEST_NOTE:,}",
            hint="Split it into several notes.",
        )

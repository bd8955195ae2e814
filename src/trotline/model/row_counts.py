"""Row counts of a sink."""

import msgspec


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of one job's records, and the number of rows now.

    new + changed + again = records written by the job's workers, repeats after kills included.
    """

    new: int = 0
    """Inserted rows."""
    changed: int = 0
    """Updated rows."""
    again: int = 0
    """Records that changed no data: the same data, older than the row, or twice in one batch."""
    rows: dict[str, int] | None = None
    """All rows of the sink by kind, also those of other jobs; None if they were not counted."""

    def __add__(self, other: "Stored") -> "Stored":
        return Stored(
            new=self.new + other.new,
            changed=self.changed + other.changed,
            again=self.again + other.again,
        )

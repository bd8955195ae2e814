"""What a sink holds, by its own count."""

import msgspec


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one job's records, and how many rows there are now.

    new + changed + again = records that the job's workers handed over, repeats of killed workers included.
    """

    new: int = 0
    """Rows that were not there before."""
    changed: int = 0
    """Rows that were there with other data."""
    again: int = 0
    """Records that changed no data: seen again, older than the row, or twice in one batch."""
    rows: dict[str, int] | None = None
    """All rows of the sink now, by kind, whoever stored them; None if they were not counted."""

    def __add__(self, other: "Stored") -> "Stored":
        return Stored(
            new=self.new + other.new,
            changed=self.changed + other.changed,
            again=self.again + other.again,
        )

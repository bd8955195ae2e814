"""What the merge after a job gave: kept in a note of the job, for `trotline status` and the dashboard."""

import msgspec

from trotline.model.merge import MergeTotals
from trotline.model.note import LARGEST_NOTE
from trotline.rules import redaction

NOTE = "merge"
"""The name of its note."""
LONGEST = 500
"""Characters of an error."""


class MergeNote(msgspec.Struct, frozen=True, kw_only=True):
    read: int = 0
    """Records that were new or changed."""
    totals: MergeTotals = MergeTotals()
    error: str = ""
    """Empty: it was merged."""

    @property
    def sentence(self) -> str:
        if self.error:
            return f"the merge failed: {self.error}"
        now = self.totals
        said = f"{_number(now.things, 'thing')} of {_number(now.sources, 'record')}, {now.merged:,} of several"
        return said + (f"; {_number(now.review, 'pair')} to decide" if now.review else "")


def failed(what: str) -> MergeNote:
    return MergeNote(error=redaction.text(what)[:LONGEST])


def encode(note: MergeNote) -> bytes:
    return msgspec.json.encode(note)


def decode(data: bytes) -> MergeNote | None:
    """None, if another program damaged it."""
    try:
        return msgspec.json.decode(data[:LARGEST_NOTE], type=MergeNote)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

"""What of a spider's pages is archived: everything, ok, failures, a sample, or none."""

import re

import msgspec

from trotline.model.verdict import Kind

WHICH = ("all", "ok", "failures", "none")
_SHARE = re.compile(r"(\d{1,2}(?:\.\d{1,3})?|100)%")
_GOOD = frozenset({Kind.OK.value, Kind.MOVED.value, Kind.UNCHANGED.value})
_SCALE = 100_000


class ArchiveChoice(msgspec.Struct, frozen=True):
    which: str = "all"
    share: float = 1.0
    """Of the tasks that fit. The same ones in every job: it follows from a task's identity."""

    @classmethod
    def parse(cls, text: object) -> "ArchiveChoice":
        """`"all"`, `"ok"`, `"failures"`, `"none"`, `"10%"`, `"ok 10%"`; ValueError says what else would work."""
        words = text.split() if isinstance(text, str) else []
        which = words.pop(0) if words and words[0] in WHICH else "all"
        share = _SHARE.fullmatch(words[0]) if len(words) == 1 and which != "none" else None
        if not isinstance(text, str) or not text.strip() or (words and share is None):
            raise ValueError(f'{text!r} is none of "all", "ok", "failures", "none", "10%", "ok 10%"')
        return cls(which, float(share[1]) / 100 if share else 1.0)

    def why_not(self, verdict: str, fingerprint: int) -> str:
        """Why a page is not archived; empty: it is."""
        if self.which == "none":
            return "not archived: its route archives none"
        if self.which != "all" and (verdict in _GOOD) != (self.which == "ok"):
            return f"not archived: its route archives {self.which} only"
        if self.share < 1.0 and (fingerprint % _SCALE) >= self.share * _SCALE:
            return f"not archived: a sample of {self.share:.3%} does not have it".replace(".000%", "%")
        return ""

"""How good is the ETA? Recorded crawls, and the error of the estimate at a quarter, half and three quarters of each."""

import json
from pathlib import Path
from typing import NamedTuple

from trotline.rules.eta import Range, Sample, Unknown, estimate, remember
from trotline.rules.eta_bounds import Load

RECORDINGS = Path(__file__).parent / "recordings"
SHARES = (0.25, 0.5, 0.75)

Row = tuple[float, int, int, int, int, int, float]
"""Time, waiting, leased, done, dead, admitted, and how long the longest lane takes at its pace."""


class Recording(NamedTuple):
    name: str
    rows: list[Row]

    @property
    def length(self) -> float:
        return self.rows[-1][0]


class Guess(NamedTuple):
    """What was said at a moment, beside what was true."""

    said: Range | Unknown
    truth: float

    @property
    def error(self) -> float | None:
        """By how much of the truth the best guess was wrong; None: there was no guess."""
        return None if isinstance(self.said, Unknown) else abs(self.said.likely - self.truth) / self.truth


def recordings() -> list[Recording]:
    return [
        Recording(told["name"], [tuple(row) for row in told["rows"]])
        for told in (json.loads(path.read_text()) for path in sorted(RECORDINGS.glob("*.json")))
    ]


def guess(recording: Recording, share: float) -> Guess:
    """What a viewer who watched from the start was told when this share of the time had passed."""
    until = share * recording.length
    samples: tuple[Sample, ...] = ()
    seen = [row for row in recording.rows if row[0] <= until]
    for at, _, _, done, dead, admitted, _ in seen:
        samples = remember(samples, Sample(at, done + dead, admitted))
    at, waiting, leased, *_, floor = seen[-1]
    # One lane that takes as long as the longest one did.
    return Guess(estimate(samples, waiting + leased, [Load(1, floor)]), recording.length - at)

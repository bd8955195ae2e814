"""How often each kind of failure came lately: totals by signature, a point a minute, kept with the job's summary."""

import msgspec

from trotline.model.job import Progress
from trotline.model.time import Seconds
from trotline.rules.job_figures import signatures

EVERY: Seconds = 60.0
POINTS = 30
NAMES = 20
"""Signatures that are followed; of later ones no trend is known."""
_LONGEST = 200


class SignatureTrend(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    names: tuple[str, ...] = ()
    points: tuple[tuple[int, ...], ...] = ()
    """The time, then the totals in the order of the names; a name that is missing at the end came later."""

    def lately(self, name: str, total: int) -> list[int] | None:
        """New failures from point to point, the last of them until now; None: unknown."""
        if name[:_LONGEST] not in self.names or not self.points:
            return None
        place = 1 + self.names.index(name[:_LONGEST])
        totals = [point[place] if place < len(point) else 0 for point in self.points]
        return [max(0, after - before) for before, after in zip(totals, [*totals[1:], total], strict=True)]


def kept(trend: SignatureTrend, progress: Progress) -> SignatureTrend:
    """With a point of now, if the last one is old enough."""
    if trend.points and 0 <= progress.now - trend.points[-1][0] < EVERY:
        return trend
    found = {name[:_LONGEST]: count for name, count in signatures(progress)}
    names = tuple(dict.fromkeys((*trend.names, *found)))[:NAMES]
    point = (int(progress.now), *(found.get(name, 0) for name in names))
    return SignatureTrend(names=names, points=(*trend.points, point)[-POINTS:])

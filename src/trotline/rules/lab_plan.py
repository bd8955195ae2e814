"""Which numbers of processes and slots a laboratory compares, in the time that it has."""

import msgspec

from trotline.model.time import Seconds

SHORTEST: Seconds = 25.0
"""Of one measurement: workers need some seconds to start, and send figures every 5 s."""
LONGEST_LIST = 10


class Phase(msgspec.Struct, frozen=True):
    processes: int
    slots: int
    """Of each process."""

    @property
    def name(self) -> str:
        return f"{self.processes} x {self.slots} slots"


def phases(cores: float, whole: Seconds) -> tuple[tuple[Phase, ...], Seconds]:
    """The phases, and how long each takes. What matters most comes first: with little time, the rest is left out."""
    most = max(1, int(cores))
    wanted = [Phase(1, 16), Phase(1, 8), Phase(1, 32), Phase(2, 16)]
    wanted += [Phase(number, 16) for number in (most, 2 * most) if number > 2]
    wanted += [Phase(1, 64), Phase(2, 32), Phase(1, 4)]
    chosen = list(dict.fromkeys(wanted))[: max(1, min(LONGEST_LIST, int(whole // SHORTEST)))]
    ordered = sorted(chosen, key=lambda each: (each.processes * each.slots, each.processes))
    return tuple(ordered), whole / len(ordered)

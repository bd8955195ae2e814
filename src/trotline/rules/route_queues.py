"""A queue per route: of a job with such queues, each lane keeps the tasks of each route apart (F21).

A frontier that finds its lanes by name makes one of each queue (`queue_name`); one that orders its tasks by level adds
the number of the queue to it (`level_in`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from trotline.errors import FrontierError

OTHERS = 0
"""The number of the queue for tasks of routes that the spider did not have when its job was started."""
MOST_QUEUES = 60
"""Routes of a spider with a queue per route."""
SPAN = 2**20
"""Levels of one queue."""
FAR = 2**17
"""Priorities of a job with queues are clamped to it. Levels are twice a priority, and retries increase them: there is
room for that within SPAN."""
MARK = "\x1f"
"""Separates a lane from a route in the name of a queue."""


def number_of(queues: Sequence[str], route: str) -> int:
    """The number of the route's queue."""
    return queues.index(route) + 1 if route in queues else OTHERS


def route_of(queues: Sequence[str], number: int) -> str:
    """The route of a queue; empty: OTHERS."""
    return queues[number - 1] if 0 < number <= len(queues) else ""


def wanted(queues: Sequence[str], routes: Sequence[str] | None) -> list[int]:
    """The numbers of the queues that a worker asks for. None: all of them, in a job without queues none."""
    if routes is None:
        return list(range(len(queues) + 1)) if queues else []
    if not queues:
        raise FrontierError(
            "this job has one queue for all routes, so a worker cannot take some of them only",
            hint="Give the spider a queue per route, Spider(..., queue_per_route=True), and start a new job.",
        )
    unknown = [route for route in routes if route not in queues]
    if unknown:
        raise FrontierError(
            f"this job has no queue for the route {unknown[0]!r}",
            hint=f"Its routes are: {', '.join(queues)}. A route that was added to the spider later is in the next job.",
        )
    return [number_of(queues, route) for route in dict.fromkeys(routes)]


def queue_name(queues: Sequence[str], lane: str, route: str) -> str:
    """The name of the lane's queue for a route; the lane itself in a job without queues."""
    return f"{lane}{MARK}{route if route in queues else ''}" if queues else lane


def queue_names(queues: Sequence[str], lane: str) -> list[str]:
    """All queues of a lane."""
    return [queue_name(queues, lane, route) for route in ("", *queues)] if queues else [lane]


def lane_of(queues: Sequence[str], name: str) -> str:
    """The lane of a queue."""
    return name.rpartition(MARK)[0] if queues else name


def keys_of(queues: Sequence[str], pools: Sequence[str], routes: Sequence[str] | None) -> tuple[str, ...]:
    """What lanes are looked for by: their proxy pool, and in a job with queues their route."""
    numbers = wanted(queues, routes)
    pools = tuple(dict.fromkeys(pools))
    if not queues:
        return pools
    return tuple(queue_name(queues, pool, route_of(queues, number)) for pool in pools for number in numbers)


LaneTotals = tuple[str, int, int, int, bytes]
"""Name, waiting, leased, the operator's state, and the packed pace."""


def merged(queues: Sequence[str], rows: Iterable[LaneTotals]) -> list[LaneTotals]:
    """Queues of one lane as one row, in the order of the first of each."""
    lanes: dict[str, LaneTotals] = {}
    for row in rows:
        name = lane_of(queues, row[0])
        _, waiting, leased, state, packed = lanes.get(name, (name, 0, 0, row[3], row[4]))
        lanes[name] = (name, waiting + row[1], leased + row[2], max(state, row[3]), packed)
    return list(lanes.values())


def whole_lanes(queues: Sequence[str], names: Sequence[str]) -> int:
    """How many of the names of queues, which are sorted, can be shown: without the last lane, which may go on."""
    last = lane_of(queues, names[-1])
    count = len(names)
    while count and lane_of(queues, names[count - 1]) == last:
        count -= 1
    return count or len(names)


def by_route(queues: Sequence[str], rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The sum of numbers per queue, by route; "" are other routes."""
    sums: dict[str, int] = {}
    for name, count in rows:
        route = name.rpartition(MARK)[2]
        sums[route] = sums.get(route, 0) + count
    return {route: sums[route] for route in ("", *queues) if route in sums}


def untaken(waiting: Mapping[str, int], taken: Collection[str]) -> str:
    """A sentence about routes with waiting tasks that no worker takes; empty if there are none."""
    left = [(route, count) for route, count in waiting.items() if count and route not in taken]
    parts = [
        f"{count:,} task{'' if count == 1 else 's'} of {f'route {route}' if route else 'other routes'}"
        for route, count in left
    ]
    if not parts:
        return ""
    one = len(left) == 1 and left[0][0]
    verb = "waits" if len(left) == 1 and left[0][1] == 1 else "wait"
    return f"{', '.join(parts)} {verb}: no worker takes {'it' if one else 'them'}"

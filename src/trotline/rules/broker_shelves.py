"""Where a task waits whose body is at a broker (docs/decisions/113-brokered-frontiers.md).

A shelf is one queue of the broker. All lanes share the main shelves, one per band of priorities; of each lane only
LANE_SHARE tasks are there. What a lane has beyond that goes to one of OVERFLOWS groups of shelves, chosen by its name.
"""

BANDS = (20, 50, 80, 101)
"""Priorities below the first number are band 0, below the second band 1, and so on."""
LANE_SHARE = 500
"""Tasks of one lane on the main shelves. More of them would hold up the lanes behind them."""
OVERFLOWS = 32
"""Groups of shelves for lanes with more."""
PARCEL_TASKS = 100
"""Tasks of one parcel: what is published, delivered and moved as a whole."""
PARCEL_BYTES = 65_536
"""Blobs of one parcel; a larger task stays in the Books. Brokers limit messages: SQS to 256 KiB."""
WINDOW = 100_000
"""Tasks in the Books' queues above which no more are taken off the shelves, divided by the number of shards."""
BAND_SLACK = 0.1
"""For every band above the last, the window may be exceeded by this share: when it is full of tasks that can wait,
those that cannot still come through."""


def band(priority: int) -> int:
    return sum(priority >= limit for limit in BANDS)


def shelf_name(shard: int, band_number: int, overflow: int | None = None) -> str:
    """Letters, digits and dots: it is a part of the name of a queue."""
    group = "" if overflow is None else f"o{overflow}"
    return f"s{shard}.{group}b{band_number}"


def order(shelf: str) -> tuple[int, bool]:
    """Sorts shelves: sooner bands first, and the main shelf of a band before its overflows."""
    group, _, number = shelf.rpartition("b")
    return int(number) if number.isdecimal() else len(BANDS) + 1, group.endswith(".") is False


def overflow_of(shelf: str) -> int | None:
    """The number of its group; None: a main shelf."""
    group = shelf.rpartition(".")[2].rpartition("b")[0]
    return int(group[1:]) if group[1:].isdecimal() else None


def band_limit(shelf: str) -> float:
    """Tasks in the queues up to which more are taken off this shelf, of a frontier with one shard."""
    return WINDOW * (1 + BAND_SLACK * (len(BANDS) - min(order(shelf)[0], len(BANDS))))


def books_only(place: str) -> str:
    """For a client that does not know of the broker."""
    return (
        f"its tasks wait at a broker, and {place} keeps only its books; name the frontier that it was started with:"
        " --frontier 'amqp://...?books=...'"
    )


MISSING = "the books count "
"""How `missing` begins."""


UNREACHABLE = "broker is unreachable: "
"""How `unreachable` begins."""


def unreachable(what: str) -> str:
    """For operators: pages whose tasks are at hand are visited, and new ones are kept in the books for a while."""
    return f"{UNREACHABLE}{what}"


def missing(tasks: int, shelves: int, place: str) -> str:
    """For operators: these tasks do not come."""
    queues = "a shelf whose queue" if shelves == 1 else f"{shelves:,} shelves whose queues"
    verb = "is" if shelves == 1 else "are"
    return f"{MISSING}{tasks:,} {'task' if tasks == 1 else 'tasks'} on {queues} at {place} {verb} empty"

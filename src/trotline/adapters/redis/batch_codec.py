"""Batches on their way to the scripts: one argument of msgpack, flat, because nested ones cost the server twice."""

import random
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from math import isfinite
from typing import Any, TypeVar

import msgspec

from trotline.adapters.redis.layouts import JOB_BOUNDS, Ending, EndingMore, EndKind, NewTask, RejectedRow
from trotline.adapters.redis.pool_members import member_field
from trotline.adapters.redis.task_codec import TaskCodec, level_of, spread, template_of
from trotline.adapters.redis.task_templates import TaskTemplates
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.pace import Pace
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.rules.counter_names import bad_record, bounded
from trotline.rules.pace import bounds_of

MOST = 1000
"""Elements of one call (tasks by their weight, leases, bad records), whatever the batch: no call keeps the server busy
for long."""
_HEAVY = 4096
"""Bytes that weigh as much as one more element."""

encode = msgspec.msgpack.Encoder().encode
_Item = TypeVar("_Item")

_LONGEST_TALLY = 100
_LONGEST_EXAMPLE = 500
_REJECTS = 900
"""Of one page that are kept; the others are counted by reason, under so many:"""
_MORE_REASONS = 50
_LONGEST_LANE = 8192
"""Four times as many bytes at most: parcels keep its length in two."""
_MOST_COUNTED = 2**50
"""Of one name in one call. Lua counts in doubles, and spells larger ones as the server's counters do not read them."""
_CALM = frozenset({Kind.OK, Kind.MOVED, Kind.UNCHANGED, Kind.GONE, Kind.UNWANTED, Kind.REFUSED})
"""News that need no chance."""
_EXAMPLES = EndingMore._fields.index("examples")
_TELLS = {kind: f"+{kind.value}" for kind in Kind}
"""The same from a visit that knew robots.txt."""


def raw(data: bytes) -> msgspec.Raw:
    """Bytes as what the server's msgpack calls a string: it does not know the type for bytes."""
    size = len(data)
    if size < 32:
        head = bytes((0xA0 | size,))
    elif size < 256:
        head = bytes((0xD9, size))
    elif size < 65_536:
        head = b"\xda" + size.to_bytes(2, "big")
    else:
        head = b"\xdb" + size.to_bytes(4, "big")
    return msgspec.Raw(head + data)


def bounds(pace: Pace) -> tuple[float, float, int]:
    """A pace as pace.lua takes it: shortest and longest interval, visits at the same time."""
    given = bounds_of(pace)
    return given.floor, given.ceiling, given.concurrency


def packed_bounds(pace: Pace) -> bytes:
    """As helpers/shared_lanes.lua reads them from a job's keys."""
    return JOB_BOUNDS.pack(*bounds(pace), pace.rate.interval if pace.per_proxy else 0.0)


def task_weight(task: Task) -> int:
    """How many elements of a call it is: the server copies its bytes several times."""
    size = len(task.url) + len(task.body)
    if task.meta:
        size += len(encode(task.meta))
    if task.headers:
        size += sum(len(name) + len(value) for name, value in task.headers)
    return 1 + size // _HEAVY


def weight_of(settlement: Settlement) -> int:
    """How many elements of a call it is."""
    weight = 1 + sum(map(task_weight, settlement.children)) + min(len(settlement.rejects), _REJECTS + _MORE_REASONS)
    task = moved(settlement)
    return weight if task is None else weight + task_weight(task)


def parts_of(items: Sequence[_Item], weight_of_item: Callable[[_Item], int]) -> Iterator[Sequence[_Item]]:
    """In their order, as many together as one call may bring; one that is too heavy stands alone."""
    start = weight = 0
    for place, item in enumerate(items):
        heavy = weight_of_item(item)
        if weight + heavy > MOST and place > start:
            yield items[start:place]
            start, weight = place, 0
        weight += heavy
    if start < len(items):
        yield items[start:]


class Batch:
    """The lanes and new tasks of one call."""

    def __init__(self, codec: TaskCodec, templates: TaskTemplates) -> None:
        self._codec = codec
        self._templates = templates
        self._places: dict[str, int] = {}
        self.names: list[str] = []
        self.tasks: list[Any] = []

    def lane(self, name: str) -> int:
        """The lane's number in this batch."""
        place = self._places.get(name)
        if place is None:
            if len(name) > _LONGEST_LANE:
                raise ValueError(f"the lane {name[:40]}... is {len(name):,} characters long; {_LONGEST_LANE:,} can be")
            self.names.append(name)
            place = self._places[name] = len(self.names)
        return place

    async def add(self, tasks: Sequence[Task]) -> None:
        templates = [template_of(task) for task in tasks]
        numbers = await self._templates.learn(templates)
        pack, put = self._codec.pack, self.tasks.extend
        for task, template in zip(tasks, templates, strict=True):
            blob = raw(pack(task, numbers[template], template.scheme))
            mark = task.fingerprint
            if task.not_before:
                _checked("not_before", task.not_before)
            put(NewTask(str(mark), spread(mark), self.lane(task.lane), level_of(task), task.not_before, blob))

    async def blob(self, task: Task) -> bytes:
        template = template_of(task)
        return self._codec.pack(task, (await self._templates.learn([template]))[template], template.scheme)


def _checked(name: str, value: float) -> float:
    """The value, if a script can keep it: one that cannot be must not be found out half-way."""
    if not isfinite(value):
        raise ValueError(f"{name} is {value}, which is not a time")
    return value


def moved(settlement: Settlement) -> Task | None:
    """What a task becomes that goes on under another URL: it stays the same task."""
    outcome, task = settlement.outcome, settlement.lease.task
    if not isinstance(outcome, Snooze) or outcome.task is None:
        return None
    return msgspec.structs.replace(outcome.task, fingerprint=task.fingerprint, attempt=task.attempt)


LeaseName = tuple[int, int]


def name_of(lease: Lease) -> LeaseName:
    """Token and fingerprint: a server that has forgotten its last seconds hands out the same tokens again."""
    return lease.token, lease.task.fingerprint


def token_field(token: int) -> bytes:
    """As the field of a worker's hash; a number that no token can be is held by no worker."""
    return token.to_bytes(6, "big") if 0 <= token < 1 << 48 else b""


def fingerprint_field(task: Task) -> bytes:
    return task.fingerprint.to_bytes(8, "big", signed=True)


async def endings(
    settlements: Sequence[Settlement], batch: Batch, chance: random.Random, left: Container[LeaseName]
) -> list[Any]:
    """An Ending for each settlement, flat. `left`: those that go on in another shard."""
    flat: list[Any] = []
    for settlement in settlements:
        lease, news = settlement.lease, settlement.news
        kind, name, more = await _outcome(settlement, batch, name_of(lease) in left)
        if settlement.rejects or settlement.examples:
            more = {**more, **_rare(settlement)}
        if settlement.lift:
            more = {"rejects": (), **more, "lift": [raw(member_field(member)) for member in settlement.lift]}
        news_values: tuple[float, float, float] = (0, 0, 0)
        if news is not None:
            _checked("took", news.took + news.rest + news.interval)
            news_values = (news.rest, news.interval, 0 if news.kind in _CALM else chance.random())
        elif settlement.member is MemberResult.FAULT:
            news_values = (0, 0, chance.random())
        flat += Ending(
            raw(token_field(lease.token)),
            raw(fingerprint_field(lease.task)),
            kind,
            name,
            None if news is None else _TELLS[news.kind] if news.robots else news.kind.value,
            0 if news is None else news.took,
            settlement.member.value if lease.member else None,
            _more(news_values, _tallies(settlement), more),
        )
    return flat


def _more(news_values: tuple[float, float, float], tallies: list[Any], more: dict[str, Any]) -> list[Any] | None:
    """What settle.lua gets beside the usual: nothing, and else no more than there is."""
    if not more:
        return [*news_values, tallies] if tallies or any(news_values) else None
    full = EndingMore(*news_values, tallies, **more)
    return list(full if "rejects" in more else full[:_EXAMPLES])


async def _outcome(settlement: Settlement, batch: Batch, left: bool) -> tuple[EndKind, str, dict[str, Any]]:
    """What becomes of it, what that is counted as, and what it takes with it (EndingMore)."""
    outcome = settlement.outcome
    if isinstance(outcome, Done):
        return EndKind.DONE, f"dropped: {outcome.why}"[:_LONGEST_TALLY] if outcome.why else "ok", {}
    if isinstance(outcome, Retry):
        return EndKind.RETRY, f"retry: {outcome.why}"[:_LONGEST_TALLY], {"wait": _checked("wait", outcome.wait)}
    if isinstance(outcome, Snooze):
        name = f"snooze: {outcome.why}"[:_LONGEST_TALLY]
        more: dict[str, Any] = {"wait": _checked("wait", outcome.wait)}
        task = moved(settlement)
        if task is None or left:
            return EndKind.LEFT if left else EndKind.SNOOZE, name, more
        more |= {"lane": batch.lane(task.lane), "blob": raw(await batch.blob(task))}
        return EndKind.SNOOZE, name, more
    assert isinstance(outcome, Bury)  # noqa: S101 - there is no fifth one
    return EndKind.BURY, f"dead: {outcome.why}"[:_LONGEST_TALLY], {"why": outcome.why, "detail": outcome.detail}


def _tallies(settlement: Settlement) -> list[Any]:
    for name, count in settlement.tallies.items():
        if not isinstance(count, int) or not -_MOST_COUNTED <= count <= _MOST_COUNTED:
            raise ValueError(f"{count!r:.40} of {name[:40]!r} is not a count")
    return [part for name, count in settlement.tallies.items() for part in (name[:_LONGEST_TALLY], count)]


def _rare(settlement: Settlement) -> dict[str, list[Any]]:
    """Examples and rejects, each flat."""
    examples = [
        part for name, url in settlement.examples.items() for part in (name[:_LONGEST_TALLY], url[:_LONGEST_EXAMPLE])
    ]
    task, rejects = settlement.lease.task, list[Any]()
    for reject in settlement.rejects[:_REJECTS]:
        row = msgspec.json.encode((task.url, task.route, reject.kind, reject.why, reject.data)).decode()
        rejects += RejectedRow(bad_record(reject.why), 1, row)
    others = Counter(bad_record(reject.why) for reject in settlement.rejects[_REJECTS:])
    for why, count in bounded(others, _MORE_REASONS).items():
        rejects += RejectedRow(why, count, "")
    return {"examples": examples, "rejects": rejects}

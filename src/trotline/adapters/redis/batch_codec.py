"""Encodes batches for the scripts: flat msgpack, as nested lists cost the server twice as much, and packed records."""

import random
import struct
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from math import isfinite
from typing import Any, TypeVar

import msgspec

from trotline.adapters.redis.lua_layouts import (
    JOB_BOUNDS,
    PACKED_RUN,
    TOKEN_BYTES,
    EndingMore,
    EndingRun,
    EndKind,
    NewTask,
    RejectedRow,
)
from trotline.adapters.redis.pool_members import member_field
from trotline.adapters.redis.task_codec import TaskCodec, spread, template_of
from trotline.adapters.redis.task_templates import TaskTemplates
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.pace import Pace
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.rules.counter_limits import bad_record, bounded
from trotline.rules.pace import bounds_of

MOST = 1000
"""Elements per call (tasks by their weight, leases, bad records): no call blocks the server for long."""
_HEAVY = 4096
"""Bytes that count as one more element."""

encode = msgspec.msgpack.Encoder().encode
_Item = TypeVar("_Item")

_LONGEST_TALLY = 100
_LONGEST_EXAMPLE = 500
_REJECTS = 900
"""Rejected records of one page that are stored; the others are only counted by reason, up to:"""
_MORE_REASONS = 50
_LONGEST_LANE = 8192
"""In characters, so at most four times as many bytes: parcels store the length in two bytes."""
_MOST_COUNTED = 2**50
"""Maximum per name and call: Lua's text form of larger numbers is not valid for HINCRBY."""
_CALM = frozenset({Kind.OK, Kind.MOVED, Kind.UNCHANGED, Kind.GONE, Kind.UNWANTED, Kind.REFUSED})
"""Feedback that needs no random number."""
_EXAMPLES = EndingMore._fields.index("examples")
_WITH_ROBOTS = {kind: f"+{kind.value}" for kind in Kind}
"""From a visit that knew robots.txt."""


def raw(data: bytes) -> msgspec.Raw:
    """Bytes as a msgpack string: the server's msgpack does not know the type for bytes."""
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
    """Elements of a call: the server copies the bytes of a task several times."""
    size = len(task.url) + len(task.body)
    if task.meta:
        size += len(encode(task.meta))
    if task.headers:
        size += sum(len(name) + len(value) for name, value in task.headers)
    return 1 + size // _HEAVY


def weight_of(settlement: Settlement) -> int:
    weight = 1 + sum(map(task_weight, settlement.children)) + min(len(settlement.rejects), _REJECTS + _MORE_REASONS)
    task = moved(settlement)
    return weight if task is None else weight + task_weight(task)


def parts_of(items: Sequence[_Item], weight_of_item: Callable[[_Item], int]) -> Iterator[Sequence[_Item]]:
    """In order, in parts of at most MOST elements; a heavier item is a part of its own."""
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
        self.chained = False
        """Some of the tasks have a chain."""

    def lane(self, name: str) -> int:
        """The lane's number in this batch."""
        place = self._places.get(name)
        if place is None:
            if len(name) > _LONGEST_LANE:
                raise ValueError(
                    f"the lane {name[:40]}... is {len(name):,} characters long; the limit is {_LONGEST_LANE:,}"
                )
            self.names.append(name)
            place = self._places[name] = len(self.names)
        return place

    async def add(self, tasks: Sequence[Task]) -> None:
        templates = [template_of(task) for task in tasks]
        numbers = await self._templates.learn(templates)
        pack, level_of, put = self._codec.pack, self._codec.level_of, self.tasks.extend
        for task, template in zip(tasks, templates, strict=True):
            blob = raw(pack(task, numbers[template], template.scheme))
            mark = task.fingerprint
            self.chained = self.chained or task.chain != ""
            if task.not_before:
                _checked("not_before", task.not_before)
            put(NewTask(str(mark), spread(mark), self.lane(task.lane), level_of(task), task.not_before, blob))

    async def blob(self, task: Task) -> bytes:
        template = template_of(task)
        return self._codec.pack(task, (await self._templates.learn([template]))[template], template.scheme)


def _checked(name: str, value: float) -> float:
    """Raises before the call for a value that would make the script fail half-way."""
    if not isfinite(value):
        raise ValueError(f"{name} is {value}, which is not a time")
    return value


def moved(settlement: Settlement) -> Task | None:
    """The task under its new URL, with the same identity; None if it did not move."""
    outcome, task = settlement.outcome, settlement.lease.task
    if not isinstance(outcome, Snooze) or outcome.task is None:
        return None
    return msgspec.structs.replace(outcome.task, fingerprint=task.fingerprint, attempt=task.attempt)


LeaseName = tuple[int, int]


def name_of(lease: Lease) -> LeaseName:
    """Token and fingerprint: a server that lost its last seconds issues the same tokens again."""
    return lease.token, lease.task.fingerprint


def token_field(token: int) -> bytes:
    """The field in a worker's hash; empty, which no worker holds, for an invalid token."""
    return token.to_bytes(6, "big") if 0 <= token < 1 << 48 else b""


def fingerprint_field(task: Task) -> bytes:
    return task.fingerprint.to_bytes(8, "big", signed=True)


class Endings:
    """The leases that end in one call, lane by lane, and the lists that they refer to."""

    def __init__(self, settlements: Sequence[Settlement], batch: Batch) -> None:
        """The lanes of the leases are the first ones of the batch."""
        lanes = [batch.lane(settlement.lease.task.lane) for settlement in settlements]
        self.lanes = len(batch.names)
        self.order = sorted(range(len(lanes)), key=lanes.__getitem__)
        """Their places in `settlements`. Those of a lane stay in their order, by which it learns."""
        self.numbers = [0] * len(lanes)
        """The number of each settlement in that order, from 1."""
        for number, place in enumerate(self.order, 1):
            self.numbers[place] = number
        self.mores: list[list[Any]] = []
        self._texts: dict[str, int] = {}
        self._runs: list[EndingRun] = []
        self._sizes: list[int] = []
        self._last: tuple[EndingRun, bool] | None = None
        self._took: list[float] = []
        leases = [settlements[place].lease for place in self.order]
        self.tokens = b"".join([token_field(lease.token).rjust(TOKEN_BYTES, b"\0") for lease in leases])
        self.fingerprints = b"".join([fingerprint_field(lease.task) for lease in leases])

    @property
    def texts(self) -> list[str]:
        return list(self._texts)

    @property
    def took(self) -> bytes:
        return struct.pack(f"<{len(self._took)}d", *self._took)

    @property
    def runs(self) -> bytes:
        by_lane = Counter(run.lane for run in self._runs)
        return b"".join([
            PACKED_RUN.pack(*run._replace(size=size, is_only=by_lane[run.lane] == 1))
            for run, size in zip(self._runs, self._sizes, strict=True)
        ])  # fmt: skip

    def text(self, text: str | None) -> int:
        return 0 if text is None else self._texts.setdefault(text, len(self._texts) + 1)

    def add(self, run: EndingRun, took: float, more: list[Any] | None, *, apart: bool) -> None:
        """`run`: of this one alone. `apart`: it is not joined with the one before it."""
        if more is not None:
            self.mores.append(more)
        self._took.append(took)
        alike = run, more is None
        if apart or alike != self._last:
            self._runs.append(run if more is None else run._replace(more=len(self.mores)))
            self._sizes.append(0)
        self._sizes[-1] += 1
        self._last = alike

    def answers(self, given: Sequence[_Item]) -> list[_Item]:
        """What is in the order of the leases here, in the order of the settlements."""
        return [given[number - 1] for number in self.numbers]


async def endings(
    settlements: Sequence[Settlement], batch: Batch, chance: random.Random, left: Container[LeaseName]
) -> Endings:
    """`left`: leases whose task continues in another shard. No lease may be there twice."""
    found = Endings(settlements, batch)
    for place in found.order:
        settlement = settlements[place]
        lease, feedback = settlement.lease, settlement.news
        outcome, name, more = await _outcome(settlement, batch, name_of(lease) in left)
        if settlement.rejects or settlement.examples:
            more = {**more, **_rare(settlement)}
        if settlement.lift:
            more = {"rejects": (), **more, "lift": [raw(member_field(member)) for member in settlement.lift]}
        values: tuple[float, float, float] = (0, 0, 0)
        if feedback is not None:
            _checked("took", feedback.took + feedback.rest + feedback.interval)
            values = (feedback.rest, feedback.interval, 0 if feedback.kind in _CALM else chance.random())
        elif settlement.member is MemberResult.FAULT:
            values = (0, 0, chance.random())
        kind = None
        if feedback is not None:
            kind = _WITH_ROBOTS[feedback.kind] if feedback.robots else feedback.kind.value
        run = EndingRun(
            lane=batch.lane(lease.task.lane),
            size=1,
            outcome=outcome,
            is_only=False,
            tally=found.text(name),
            kind=found.text(kind),
            member=found.text(settlement.member.value if lease.member else None),
            more=0,
        )
        # The name of such a lane is not what the server has, which may be different for each of them.
        apart = "\ufffd" in lease.task.lane
        found.add(run, 0 if feedback is None else feedback.took, _more(values, _tallies(settlement), more), apart=apart)
    return found


def _more(feedback: tuple[float, float, float], tallies: list[Any], more: dict[str, Any]) -> list[Any] | None:
    """Optional values for settle.lua, as short as possible."""
    if not more:
        return [*feedback, tallies] if tallies or any(feedback) else None
    full = EndingMore(*feedback, tallies, **more)
    return list(full if "rejects" in more else full[:_EXAMPLES])


async def _outcome(settlement: Settlement, batch: Batch, left: bool) -> tuple[EndKind, str, dict[str, Any]]:
    """The kind of ending, the name of its counter, and more values (EndingMore)."""
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
    assert isinstance(outcome, Bury)  # noqa: S101 - the only other outcome
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

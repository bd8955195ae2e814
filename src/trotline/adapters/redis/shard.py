"""One shard of a job: lanes whose keys are in one hash slot."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Collection, Container, Sequence
from typing import Any

import msgspec

from trotline.adapters.redis import drop_idle_rings, keys
from trotline.adapters.redis.batch_codec import (
    Batch,
    LeaseName,
    bounds,
    encode,
    endings,
    fingerprint_field,
    name_of,
    parts_of,
    raw,
    task_weight,
    token_field,
)
from trotline.adapters.redis.duplicate_filter import pieces
from trotline.adapters.redis.lease_result import LeaseResult, handed_out
from trotline.adapters.redis.lua_layouts import LeaseReply, MovedTask, RevisitRow, WorkerRow, unflatten
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Server
from trotline.adapters.redis.settle_batches import SettleBatches
from trotline.adapters.redis.task_codec import COUNTS, LEVEL_BYTES, TaskCodec
from trotline.adapters.redis.task_templates import TaskTemplates, templates_in
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.job import Job, WorkerInfo, WorkerView
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.pace import START_SLACK, Pace
from trotline.model.task import Task
from trotline.model.task_json import Undecodable
from trotline.model.time import Moment, Seconds
from trotline.ports.broker_books import Parcel
from trotline.ports.frontier import DIRECT
from trotline.rules.untrusted_values import counter
from trotline.rules.worker_info import read_info, shown_name

_ADMISSIONS = {ord("n"): Admission.NEW, ord("d"): Admission.DUPLICATE, ord("r"): Admission.REFUSED}
_SETTLED = {ord("1"): Settled.OK, ord("0"): Settled.STALE}
_PAGE = 500
_HEAD = len(LeaseReply._fields)
_BROUGHT_DOWN = "killed: reading its page brought the worker down"


class Shard:
    def __init__(self, server: Server, job: Job, number: int, shards: int, chance: random.Random) -> None:
        self.server = server
        self.prefix = keys.prefix(job.id, number)
        self.key = keys.job(self.prefix)
        self.codec = TaskCodec(job.started_at, job.rules.queues)
        self.templates = TaskTemplates(server, self.prefix)
        self._job = job
        self.seen = pieces(job.memory)
        """Helpers of the duplicate filter."""
        self._number, self._shards = number, shards
        self._chance = chance
        self._lost: dict[str, str] = {}
        """Worker -> the first of its consecutive lease calls without a reply: the next call returns their leases."""
        self._last: dict[str, int] = {}
        """Worker -> the last token that reached it."""
        self._unsure: dict[str, tuple[list[int], str]] = {}
        """Settles without a reply: repeated under the same call name."""
        self.made: list[Parcel] | None = None
        """Parcels that this client made, for itself to publish (books.py). None: it does not publish."""
        self._puts = 0
        self._settling = SettleBatches(self)
        self._announce_call = ""
        """Name of an announcing call without a reply, for its repeat."""

    def batch(self) -> Batch:
        return Batch(self.codec, self.templates)

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        return [_ADMISSIONS[letter] for part in parts_of(tasks, task_weight) for letter in await self._admit(part)]

    async def admit_for(self, worker: str, lease: Lease, children: Sequence[Task]) -> bool:
        """Admit a page's children if the worker still holds its lease."""
        guard = worker, token_field(lease.token), fingerprint_field(lease.task)
        return bool(await self._admit(children, *guard))

    async def _admit(self, tasks: Sequence[Task], *guard: str | bytes) -> bytes:
        batch = self.batch()
        await batch.add(tasks)
        self._puts += 1
        payload = encode((batch.names, batch.tasks, batch.chained, self.made is not None))
        command = script("put", seen=self.seen)
        answer: bytes = await self.server.run(command, self.key, self.server.name, self._puts, payload, *guard)
        return self._without_parcels(answer, tasks)

    def _without_parcels(self, answer: bytes, tasks: Sequence[Task]) -> bytes:
        """Notes what the call made of these tasks (helpers/broker_shelves.lua)."""
        letters, *lines = answer.split(b"\n")
        for line in lines:
            own, shelf, *places = line.decode().split(" ")
            some = tuple(tasks[int(place) - 1] for place in places)
            if self.made is not None:
                self.made.append(Parcel(f"{self._number}.{own}", f"s{self._number}.{shelf}", some))
        return letters

    async def lease(
        self, worker: str, limit: int, pools: Sequence[str] = DIRECT, queues: str = "", upto: int | None = None
    ) -> LeaseResult:
        """`queues`: numbers of routes' queues. `upto`: no level beyond this one. Asked for nothing, it does the
        housekeeping and tells what there is."""
        result = await self._try(worker, limit, pools, queues, upto)
        for prefix in result.stuck:
            await self._rescue(prefix)
        # What they held may be ours now.
        return await self._try(worker, limit, pools, queues, upto) if result.stuck and not result.leases else result

    async def _try(self, worker: str, limit: int, pools: Sequence[str], queues: str, upto: int | None) -> LeaseResult:
        try:
            return await self._lease(worker, limit, pools, queues, upto)
        except FrontierUnreachable:
            # Once more: should the lost reply have handed out something, this call gets it back first.
            return await self._lease(worker, limit, pools, queues, upto)

    async def _lease(self, worker: str, limit: int, pools: Sequence[str], queues: str, upto: int | None) -> LeaseResult:
        rules = self._job.rules
        lost, name = self._lost.get(worker, ""), self.server.call_name()
        # Set before the call: a cancellation loses the reply, too.
        self._lost.setdefault(worker, name)
        asked_at = asyncio.get_running_loop().time()
        reply = await self.server.run(
            script("lease"), self.key, worker, limit, name, lost, repr(rules.retry_share), repr(rules.give_up),
            self._shards, self._number, "" if upto is None else upto, self._chance.random(), queues, *pools,
            again=False,
        )  # fmt: skip
        result = await self._unpack(worker, reply, asked_at)
        self._lost.pop(worker, None)
        return result

    async def _unpack(self, worker: str, reply: list[Any], asked_at: Seconds) -> LeaseResult:
        head = LeaseReply(*reply[:_HEAD])
        pause = max(0.001, (head.wake - head.now) / 1e6) if head.wake >= 0 else -1.0
        result = LeaseResult([], pause, bool(head.over), head.best, head.line, stuck=head.stuck.decode().split())
        if len(reply) == _HEAD:
            return result
        lanes = list(handed_out(reply, _HEAD))
        await self.templates.look_up(templates_in([blob for some in lanes for blob in some.blobs]))
        leased_at, token, unreadable = head.now / 1e6, head.token, []
        unpack, template = self.codec.unpack, self.templates.template
        for lane, blobs, starts, members, blocked in lanes:
            for blob, start_in, member in zip(blobs, starts, members, strict=True):
                try:
                    task, kills = unpack(blob, lane, template)
                    lease = Lease(task, token, start_in, START_SLACK, leased_at, asked_at, kills, member, blocked)
                    result.leases.append(lease)
                except Undecodable as error:
                    unreadable += [token, str(error)[:200]]
                token += self._shards
        self._last[worker] = token - self._shards
        if unreadable:
            result.parked = len(unreadable) // 2
            await self.server.run(script("bury_undecodable"), self.key, worker, *unreadable)
        return result

    async def _rescue(self, prefix: str) -> None:
        """Dead workers of another job hold places that we wait for; that job may have no other worker."""
        # Errors are ignored: leases must reach the worker, and the next call retries.
        with contextlib.suppress(FrontierError):
            await self.server.run(script("rescue_leases"), keys.job(prefix))

    async def read(self, blob: bytes, lane: str) -> Task:
        """Decode a blob; raises `Undecodable`."""
        await self.templates.look_up(templates_in([blob]))
        return self.codec.unpack(blob, lane, self.templates.template)[0]

    async def check_leases(self, worker: str, leases: Sequence[Lease]) -> list[bytes | None]:
        """For each lease that the worker still holds its level and counts (check_leases.lua)."""
        flat = [part for lease in leases for part in (token_field(lease.token), fingerprint_field(lease.task))]
        found: list[bytes | None] = await self.server.run(script("check_leases"), self.key, worker, *flat)
        return found

    async def arrive(
        self, moves: Sequence[tuple[Task, Seconds, bytes]], mark: Callable[[Task], str] | None = None
    ) -> None:
        """Receive tasks from another shard, each with its delay and its result of `check_leases`."""
        for some in parts_of(moves, lambda move: task_weight(move[0])):
            await self._arrive(some, mark or _mark)

    async def _arrive(self, moves: Sequence[tuple[Task, Seconds, bytes]], mark: Callable[[Task], str]) -> None:
        batch = self.batch()
        flat: list[Any] = []
        for task, wait, held in moves:
            blob = await batch.blob(task)
            level = int.from_bytes(held[:LEVEL_BYTES], "little", signed=True)
            blob = blob[: COUNTS.start] + held[LEVEL_BYTES:] + blob[COUNTS.stop :]
            flat += MovedTask(mark(task), batch.lane(task.lane), level, wait, raw(blob))
        await self.server.run(script("receive_moved_tasks"), self.key, encode((batch.names, flat)))

    async def settle(
        self, worker: str, settlements: Sequence[Settlement], left: Container[LeaseName] = frozenset()
    ) -> list[Settled]:
        """In as many calls as needed. `left`: leases whose task continues in another shard."""
        return await self._settling.settle(worker, settlements, left)

    async def settle_at_once(
        self, worker: str, settlements: Sequence[Settlement], left: Container[LeaseName] = frozenset()
    ) -> list[Settled]:
        first = {name_of(each.lease): each for each in reversed(settlements)}
        if len(first) < len(settlements):
            # A lease that appears twice in one batch is settled once, by the first.
            answers = dict(zip(first, await self.settle_at_once(worker, list(first.values()), left), strict=True))
            return [answers.pop(name_of(each.lease), Settled.STALE) for each in settlements]
        batch = self.batch()
        ends = await endings(settlements, batch, self._chance, left)
        owners: list[int] = []
        children: list[Task] = []
        for number, settlement in zip(ends.numbers, settlements, strict=True):
            children += settlement.children
            owners += [number] * len(settlement.children)
        if children:
            await batch.add(children)
        chained = batch.chained or any(settlement.lease.task.chain for settlement in settlements)
        payload = encode(
            (batch.names, ends.lanes, batch.tasks, owners, ends.texts, ends.mores, chained, self.made is not None)
        )
        tokens = [settlement.lease.token for settlement in settlements]
        name = self._settle_name(worker, tokens)
        # Without children it needs no more memory, and is allowed when there is none.
        command = script("settle", seen=self.seen, even_when_full=not children)
        self._unsure[worker] = (tokens, name)
        answer = await self.server.run(
            command, self.key, worker, name, payload, ends.runs, ends.tokens, ends.fingerprints, ends.took
        )
        self._unsure.pop(worker, None)
        return ends.answers([_SETTLED[digit] for digit in self._without_parcels(answer, children)])

    def _settle_name(self, worker: str, tokens: list[int]) -> str:
        asked, name = self._unsure.get(worker, ([], ""))
        return name if name and asked == tokens else self.server.call_name()

    async def beat(self, worker: str, about: WorkerInfo | None) -> None:
        packed = msgspec.msgpack.encode(about) if about is not None else ""
        await self.server.run(script("heartbeat"), self.key, worker, packed)

    async def leave(self, worker: str, guilty: int | None, why: str, detail: str) -> int:
        for known in (self._lost, self._last, self._unsure):
            known.pop(worker, None)
        self._settling.forget(worker)
        token = "" if guilty is None else guilty
        gone, more = 0, 1
        while more:
            some, more = await self.server.run(script("leave"), self.key, worker, token, why or _BROUGHT_DOWN, detail)
            gone += some
        return gone

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        mine = [token_field(token) for token in tokens if token % self._shards == self._number]
        known = self._last.get(worker, -1), *filter(None, mine)
        gone, more = 0, 1
        while more:
            some, more = await self.server.run(script("reconcile_leases"), self.key, worker, *known)
            gone += some
        return gone

    async def seal(self) -> None:
        await self.server.run(script("seal"), self.key)

    async def announce(self) -> bool:
        return bool(await self._announce("announce_finish"))

    async def finish(self, total: int, *, announce: bool = False) -> tuple[Moment, bool]:
        """The whole job ended after `total` tasks; when, and whether this call announces it."""
        if announce:
            at, ours = await self._announce("finish_sharded", total)
        else:
            at, ours = await self.server.run(script("finish_sharded"), self.key, total, "")
        return float(at), bool(ours)

    async def _announce(self, command: str, *args: int) -> Any:
        name, self._announce_call = self._announce_call or self.server.call_name(), ""
        try:
            return await self.server.run(script(command), self.key, *args, name)
        except BaseException:
            self._announce_call = name
            raise

    async def tidy(self) -> None:
        """After the job's end: delete idle rings of proxies, and lanes without learned state, in pages."""
        # First: a lane that is deleted counts no visits.
        await drop_idle_rings.drop(self.server, self.prefix)
        cursor = b""
        while cursor != b"0":
            cursor = await self.server.run(script("drop_idle_lanes"), self.key, cursor or b"0", _PAGE)

    async def workers(self) -> list[WorkerView]:
        now, *rows = await self.server.run(script("list_workers"), self.key)
        return [
            WorkerView(
                name=shown_name(row.name.decode(errors="replace")),
                silent_for=max(0.0, (now - row.seen_at) / 1e6),
                leased=row.leased,
                done=counter(row.done),
                failed=counter(row.failed),
                about=read_info(row.about),
            )
            for row in unflatten(WorkerRow, rows)
        ]

    async def steer(self, verb: str, lane: str | None, pace: Pace | None = None) -> int:
        """Returns the number of buried tasks."""
        packed = encode(bounds(pace)) if pace is not None else ""
        buried, more = 0, True
        while more:
            count, more = await self.server.run(script("steer"), self.key, verb, lane or "", packed)
            buried += count
        return buried

    async def revive(self, why: str, risen: Sequence[tuple[str, int]]) -> int:
        """Revive those of these graves (id, level) whose reason starts with `why`, and the chains of steps."""
        if not risen:
            return 0
        payload = encode([why, *(part for grave in risen for part in grave)])
        count, more = await self.server.run(script("revive"), self.key, payload)
        return int(count) + (await self.tend_chains() if more else 0)

    async def tend_chains(self) -> int:
        """Go on with chains of which steps are still to be buried or revived. Returns the number of the latter."""
        count, more = 0, True
        while more:
            some, more = await self.server.run(script("revive"), self.key, encode([""]))
            count += some
        return count

    async def revisit_rejects(self, records: Sequence[tuple[bytes, str, int | None]]) -> int:
        """Delete these rejected records (entry, reason, level of the page), and queue pages with a level."""
        rows = [RevisitRow(raw(entry), why, False if level is None else level) for entry, why, level in records]
        flat = encode([part for row in rows for part in row])
        return int(await self.server.run(script("revisit_rejects"), self.key, flat))


def _mark(task: Task) -> str:
    """Identifies a move, for repeats: the number of redirects only grows."""
    return f"{task.fingerprint}.{task.hops}"

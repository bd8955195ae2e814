"""One shard of a job: the part of its lanes whose keys live together."""

import asyncio
import contextlib
import random
from collections.abc import Collection, Container, Sequence
from typing import Any

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.batch_codec import (
    Batch,
    LeaseName,
    bounds,
    encode,
    endings,
    fingerprint_field,
    parts_of,
    raw,
    task_weight,
    token_field,
)
from trotline.adapters.redis.lease_result import Haul
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.seen_memory import pieces
from trotline.adapters.redis.server import Server
from trotline.adapters.redis.settle_batches import Settling
from trotline.adapters.redis.task_codec import Codec
from trotline.adapters.redis.task_templates import Forms, forms_in
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.job import About, Job, WorkerView
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.pace import START_SLACK, Pace
from trotline.model.task import Task
from trotline.model.task_json import Undecodable
from trotline.model.time import Moment, Seconds

_ADMISSIONS = {ord("n"): Admission.NEW, ord("d"): Admission.DUPLICATE, ord("r"): Admission.REFUSED}
_SETTLED = {ord("1"): Settled.OK, ord("0"): Settled.STALE}
_PAGE = 500
_HEAD = 7
"""Values of a lease's reply before the first lane."""
_decode_about = msgspec.msgpack.Decoder(About).decode
_BROUGHT_DOWN = "killed: reading its page brought the worker down"


class Shard:
    def __init__(self, server: Server, job: Job, number: int, shards: int, chance: random.Random) -> None:
        self.server = server
        self.prefix = keys.prefix(job.id, number)
        self.key = keys.job(self.prefix)
        self.codec = Codec(job.started_at)
        self.forms = Forms(server, self.prefix)
        self._job = job
        self.seen = pieces(job.memory)
        """The scripts of its memory."""
        self._number, self._shards = number, shards
        self._chance = chance
        self._lost: dict[str, str] = {}
        """By worker, the first of its leases in a row whose replies did not arrive: what they handed out goes back with
        the next one."""
        self._last: dict[str, int] = {}
        """By worker, the last token that reached it."""
        self._unsure: dict[str, tuple[list[int], str]] = {}
        """Settles whose replies did not arrive: asked again, they are the same call."""
        self._puts = 0
        self._settling = Settling(self)
        self._telling = ""
        """Name of a call that announces the end and whose reply did not arrive: asked again, it is the same call."""

    def batch(self) -> Batch:
        return Batch(self.codec, self.forms)

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        return [_ADMISSIONS[letter] for part in parts_of(tasks, task_weight) for letter in await self._admit(part)]

    async def admit_for(self, worker: str, lease: Lease, children: Sequence[Task]) -> bool:
        """Admit what a page led to if the worker still holds its lease."""
        guard = worker, token_field(lease.token), fingerprint_field(lease.task)
        return bool(await self._admit(children, *guard))

    async def _admit(self, tasks: Sequence[Task], *guard: str | bytes) -> bytes:
        batch = self.batch()
        await batch.add(tasks)
        self._puts += 1
        told = encode((batch.names, batch.tasks))
        deed = script("put", seen=self.seen)
        answers: bytes = await self.server.run(deed, self.key, self.server.name, self._puts, told, *guard)
        return answers

    async def lease(self, worker: str, limit: int, upto: int | None = None) -> Haul:
        """`upto`: no level beyond this one. Asked for nothing, it does the housekeeping and tells what there is."""
        haul = await self._try(worker, limit, upto)
        for prefix in haul.stuck:
            await self._rescue(prefix)
        # What they held may be ours now.
        return await self._try(worker, limit, upto) if haul.stuck and not haul.leases else haul

    async def _try(self, worker: str, limit: int, upto: int | None) -> Haul:
        try:
            return await self._lease(worker, limit, upto)
        except FrontierUnreachable:
            # Once more: should the lost reply have handed out something, this call gets it back first.
            return await self._lease(worker, limit, upto)

    async def _lease(self, worker: str, limit: int, upto: int | None) -> Haul:
        rules = self._job.rules
        lost, name = self._lost.get(worker, ""), self.server.call_name()
        # Until its reply is here, whatever it hands out is lost, also by a cancellation.
        self._lost.setdefault(worker, name)
        asked_at = asyncio.get_running_loop().time()
        reply = await self.server.run(
            script("lease"), self.key, worker, limit, name, lost, repr(rules.retry_share), repr(rules.give_up),
            self._shards, self._number, "" if upto is None else upto, again=False,
        )  # fmt: skip
        haul = await self._unpack(worker, reply, asked_at)
        self._lost.pop(worker, None)
        return haul

    async def _unpack(self, worker: str, reply: list[Any], asked_at: Seconds) -> Haul:
        now, wake, token, over, best, line, stuck = reply[:_HEAD]
        haul = Haul([], max(0.001, (wake - now) / 1e6) if wake >= 0 else -1.0, bool(over), best, line)
        haul.stuck = stuck.decode().split()
        if len(reply) == _HEAD:
            return haul
        await self.forms.look_up(forms_in(reply[_HEAD + 3 :: 2]))
        leased_at, unreadable, at = now / 1e6, [], _HEAD
        unpack, form = self.codec.unpack, self.forms.form
        while at < len(reply):
            lane, upto = reply[at].decode(errors="replace"), at + 2 + 2 * reply[at + 1]
            for place in range(at + 2, upto, 2):
                try:
                    task, kills = unpack(reply[place + 1], lane, form)
                    start_in = reply[place] / 1e6
                    haul.leases.append(Lease(task, token, start_in, START_SLACK, leased_at, asked_at, kills))
                except Undecodable as error:
                    unreadable += [token, str(error)[:200]]
                token += self._shards
            at = upto
        self._last[worker] = token - self._shards
        if unreadable:
            haul.parked = len(unreadable) // 2
            await self.server.run(script("park"), self.key, worker, *unreadable)
        return haul

    async def _rescue(self, prefix: str) -> None:
        """Workers of another job died with places that we wait for, and it may have nobody else to notice."""
        # What was leased beside it must reach the worker, and the next lease tries again.
        with contextlib.suppress(FrontierError):
            await self.server.run(script("rescue"), keys.job(prefix))

    async def read(self, blob: bytes, lane: str) -> Task:
        """The task in a blob; `Undecodable` says why not."""
        await self.forms.look_up(forms_in([blob]))
        return self.codec.unpack(blob, lane, self.forms.form)[0]

    async def live(self, worker: str, leases: Sequence[Lease]) -> list[bytes | None]:
        """For each lease that the worker still holds its level and counts, as live.lua gives them."""
        flat = [part for lease in leases for part in (token_field(lease.token), fingerprint_field(lease.task))]
        found: list[bytes | None] = await self.server.run(script("live"), self.key, worker, *flat)
        return found

    async def arrive(self, moves: Sequence[tuple[Task, Seconds, bytes]]) -> None:
        """Tasks come from another shard: each with how long it waits, and what `live` told of it."""
        for some in parts_of(moves, lambda move: task_weight(move[0])):
            await self._arrive(some)

    async def _arrive(self, moves: Sequence[tuple[Task, Seconds, bytes]]) -> None:
        batch = self.batch()
        flat: list[Any] = []
        for task, wait, told in moves:
            blob = await batch.blob(task)
            flat += (_mark(task), batch.lane(task.lane), int.from_bytes(told[:4], "little", signed=True), wait)
            flat.append(raw(blob[:9] + told[4:] + blob[13:]))
        await self.server.run(script("arrive"), self.key, encode((batch.names, flat)))

    async def settle(
        self, worker: str, settlements: Sequence[Settlement], left: Container[LeaseName] = frozenset()
    ) -> list[Settled]:
        """In as many calls as it takes. `left`: those whose task goes on in another shard."""
        return await self._settling.settle(worker, settlements, left)

    async def settle_at_once(
        self, worker: str, settlements: Sequence[Settlement], left: Container[LeaseName] = frozenset()
    ) -> list[Settled]:
        batch = self.batch()
        flat = await endings(settlements, batch, self._chance, left)
        owners: list[int] = []
        children: list[Task] = []
        for number, settlement in enumerate(settlements, 1):
            children += settlement.children
            owners += [number] * len(settlement.children)
        if children:
            await batch.add(children)
        told = encode((batch.names, batch.tasks, owners, flat, len(settlements)))
        tokens = [settlement.lease.token for settlement in settlements]
        name = self._settle_name(worker, tokens)
        # What needs no more memory is done also when there is none left.
        deed = script("settle", seen=self.seen, even_when_full=not children)
        self._unsure[worker] = (tokens, name)
        answers = await self.server.run(deed, self.key, worker, name, told)
        self._unsure.pop(worker, None)
        return [_SETTLED[digit] for digit in answers]

    def _settle_name(self, worker: str, tokens: list[int]) -> str:
        asked, name = self._unsure.get(worker, ([], ""))
        return name if name and asked == tokens else self.server.call_name()

    async def beat(self, worker: str, about: About | None) -> None:
        told = msgspec.msgpack.encode(about) if about is not None else ""
        await self.server.run(script("beat"), self.key, worker, told)

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
        told = self._last.get(worker, -1), *filter(None, mine)
        gone, more = 0, 1
        while more:
            some, more = await self.server.run(script("holds"), self.key, worker, *told)
            gone += some
        return gone

    async def seal(self) -> None:
        await self.server.run(script("seal"), self.key)

    async def announce(self) -> bool:
        return bool(await self._tell("announce"))

    async def finish(self, total: int, *, announce: bool = False) -> tuple[Moment, bool]:
        """The whole job ended with so many tasks that ever came in; when, and whether it is ours to announce."""
        if announce:
            at, ours = await self._tell("finish", total)
        else:
            at, ours = await self.server.run(script("finish"), self.key, total, "")
        return float(at), bool(ours)

    async def _tell(self, deed: str, *args: int) -> Any:
        name, self._telling = self._telling or self.server.call_name(), ""
        try:
            return await self.server.run(script(deed), self.key, *args, name)
        except BaseException:
            self._telling = name
            raise

    async def tidy(self) -> None:
        """The job has ended: lanes that have learnt nothing leave the server's memory, some at a time."""
        cursor = b""
        while cursor != b"0":
            cursor = await self.server.run(script("tidy"), self.key, cursor or b"0", _PAGE)

    async def crew(self) -> list[WorkerView]:
        """Who works here."""
        now, *crew = await self.server.run(script("crew"), self.key)
        return [
            WorkerView(
                name=name.decode(errors="replace"),
                silent_for=max(0.0, (now - heard) / 1e6),
                leased=leased,
                done=int(done),
                failed=int(failed),
                about=_decode_about(about) if about else About(),
            )
            for name, heard, leased, done, failed, about in zip(*[iter(crew)] * 6, strict=True)
        ]

    async def steer(self, verb: str, lane: str | None, pace: Pace | None = None) -> int:
        """How many tasks it buried."""
        told = encode(bounds(pace)) if pace is not None else ""
        buried, more = 0, True
        while more:
            count, more = await self.server.run(script("steer"), self.key, verb, lane or "", told)
            buried += count
        return buried

    async def revive(self, why: str, risen: Sequence[tuple[str, int]]) -> int:
        """Those of these graves (id, level) whose reason starts with `why`."""
        if not risen:
            return 0
        told = encode([why, *(part for grave in risen for part in grave)])
        return int(await self.server.run(script("revive"), self.key, told))

    async def revisit(self, records: Sequence[tuple[bytes, str, int | None]]) -> int:
        """Forget these rejected records (entry, reason, level of the page): pages with a level are visited again."""
        # Not nil, which would end a list in Lua.
        told = [(raw(entry), why, False if level is None else level) for entry, why, level in records]
        flat = encode([part for record in told for part in record])
        return int(await self.server.run(script("revisit"), self.key, flat))


def _mark(task: Task) -> str:
    """A move's name: the same move twice is one. Redirects are only ever added, so no other move has this name."""
    return f"{task.fingerprint}.{task.hops}"

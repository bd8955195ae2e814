"""Leader election on a Redis or Valkey server. The keys are documented in helpers/leader_term.lua."""

from collections.abc import Callable

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.connect import checked, connect, shards_of
from trotline.adapters.redis.damaged_jobs import forget_keys, id_text
from trotline.adapters.redis.delete_job import forget
from trotline.adapters.redis.duplicate_filter import memory_of
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Client, Server
from trotline.errors import TermOver
from trotline.model.duplicate_filter import Memory
from trotline.model.job import Job, LaneRules
from trotline.model.leadership import Term, Tick
from trotline.model.time import Moment
from trotline.ports.leadership import TERM

_RETIRED = f"{keys.JOBS}retired"
_RETIRED_AT_ONCE = 20


async def open_leadership(url: str, *, shelf: bool = False) -> "RedisLeadership":
    """Leadership on the server, after a check of its version and configuration."""
    return RedisLeadership(await checked(connect(url)), memory=memory_of(url), shards=shards_of(url), shelf=shelf)


class RedisLeadership:
    """Keeps L1 to L10 with one script per call. Implements the Leadership port."""

    def __init__(
        self,
        client: Client,
        *,
        now: Callable[[], Moment] | None = None,
        memory: Memory | None = None,
        shards: int = 0,
        shelf: bool = False,
    ) -> None:
        self._server = Server(client, now=now)
        self._jobs = RedisJobs(client, now=now, memory=memory, shards=shards, shelf=shelf)

    async def campaign(self, election: str, candidate: str) -> Term:
        answer = await self._server.run(script("campaign", even_when_full=True), _term_key(election), candidate, TERM)
        holder, epoch, now, ends = answer
        return Term(election=election, holder=holder.decode(), epoch=int(epoch), now=float(now), ends=float(ends))

    async def resign(self, term: Term) -> None:
        await self._server.run(script("resign", even_when_full=True), _term_key(term.election), term.holder, term.epoch)

    async def tick(self, election: str) -> Tick | None:
        at, schedule, job, ran = await self._server.ask("HMGET", _tick(election), "at", "schedule", "job", "ran")
        return Tick(at=float(at), schedule=schedule.decode(), job=job.decode(), ran=float(ran)) if at else None

    async def start(self, term: Term, tick: Tick, rules: LaneRules, version: str = "") -> Job | None:
        # Check first: a job that is prepared in vain would leave keys behind.
        outcome, *known = await self._under_term("tick_start", term, repr(tick.at), tick.schedule, "", "")
        if outcome == b"free":
            job = await self._jobs.prepare(term.election, rules, version)
            outcome, *known = await self._under_term(
                "tick_start", term, repr(tick.at), tick.schedule, job.id, msgspec.json.encode(job)
            )
            if outcome == b"started":
                return job
            if await self._jobs.find(job.id) is None:
                # Another client of this term was faster. (If the job is listed, only our reply was lost.)
                await forget(self._server, job.id)
        return await self._jobs.find(known[0].decode()) if outcome == b"known" else None

    async def skip(self, term: Term, tick: Tick) -> None:
        await self._under_term("tick_skip", term, repr(tick.at), tick.schedule)

    async def retire(self, term: Term, before: Moment) -> list[str]:
        mine = [job for job in await self._jobs.all() if job.spider == term.election]
        # The newest job is kept, as the spider's last run.
        old = [job.id for job in mine[:-1] if job.ended_at is not None and job.ended_at < before][:_RETIRED_AT_ONCE]
        await self._under_term("retire_jobs", term, *old)
        for name in await self._server.ask("SMEMBERS", _RETIRED):
            await forget_keys(self._server, id_text(name))
            await self._server.ask("SREM", _RETIRED, name)
        return old

    async def close(self) -> None:
        await self._server.close()

    async def _under_term(self, name: str, term: Term, *arguments: str | bytes) -> list[bytes]:
        """Run a script under the term; repeated after a lost reply, as the scripts are idempotent."""
        answer = await self._server.run(script(name), _term_key(term.election), term.holder, term.epoch, *arguments)
        answers: list[bytes] = answer if isinstance(answer, list) else [answer]
        if answers[0] == b"over":
            raise TermOver(f"term {term.epoch} of {term.holder} as coordinator of {term.election} is over")
        return answers


def _term_key(name: str) -> str:
    return f"{keys.JOBS}office:{name}"  # part of the data format


def _tick(name: str) -> str:
    return f"{keys.JOBS}tick:{name}"

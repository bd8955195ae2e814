"""Rows and settles in one transaction keep J1 to J3: on both servers, and through pgbouncer."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
from tests.contract.postgres_servers import ask

from trotline.adapters.postgres import BACKEND
from trotline.adapters.postgres.joint_commit import PostgresJointCommit
from trotline.adapters.postgres.sink import PostgresSink
from trotline.config import backends
from trotline.errors import FrontierError, SettingsError, SinkRejects
from trotline.model.job import Job, LaneRules
from trotline.model.lease import Lease, Settled, Settlement
from trotline.model.outcome import Done
from trotline.model.record import Record
from trotline.model.visit_row import VisitRow
from trotline.ports.joint_commit import Page
from trotline.testing.frontier_contract import BRISK, tasks
from trotline.worker.commit import Committer
from trotline.worker.field_coverage_counts import CoverageCount
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.work_meter import WorkMeter
from trotline.worker.worker_settings import WorkerPolicy


class Place:
    """A job and its rows in one database."""

    def __init__(self, url: str) -> None:
        self.url = url
        place, _, schema = url.partition("?schema=")
        self.frontier_url = f"{place}?schema={schema}_tasks"

    async def __aenter__(self) -> "Place":
        jobs = await backends.open_jobs(self.frontier_url)
        self.job: Job = await jobs.start("shop", LaneRules(default=BRISK.default))
        await jobs.close()
        self.opened = await backends.open_frontier(self.frontier_url, self.job)
        self.frontier, self.console = self.opened.frontier, self.opened.console
        self.sink = PostgresSink(self.url, job=self.job.id, started_at=self.job.started_at)
        await self.sink.open()
        assert BACKEND.frontier is not None
        assert BACKEND.frontier.joint is not None
        joint: Any = BACKEND.frontier.joint(self.opened, self.sink)
        self.joint: PostgresJointCommit = joint
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.sink.close()
        await self.opened.close()

    async def leases(self, count: int, worker: str = "w") -> list[Lease]:
        await self.frontier.put(tasks(count))
        await self.frontier.seal()
        held: list[Lease] = []
        while len(held) < count:
            held += await self.frontier.lease(worker, count, wait=1.0)
        return held

    async def keys(self) -> list[str]:
        return sorted(row[0] for row in await ask(self.url, "SELECT key FROM {s}.records"))

    async def visits(self) -> int:
        [[count]] = await ask(self.url, "SELECT count(*) FROM {s}.visits")
        return int(count)


def record(lease: Lease, **data: object) -> Record:
    return Record(kind="page", key=lease.task.url, data=data or {"n": 1}, url=lease.task.url, site="s", seen_at=1.0)


def visit(lease: Lease, job: Job) -> VisitRow:
    return FinishedVisit(lease=lease, outcome=Done()).line(job.id, "w")


def page(lease: Lease, job: Job, *records: Record) -> Page:
    return Page(Settlement(lease, Done()), records or [record(lease)], [visit(lease, job)])


async def test_j1_rows_visits_and_settle_are_there_together(everywhere: str) -> None:
    async with Place(everywhere) as place:
        held = await place.leases(3)

        assert await place.joint.settle("w", [page(lease, place.job) for lease in held]) == [Settled.OK] * 3

        assert await place.keys() == sorted(lease.task.url for lease in held)
        assert await place.visits() == 3
        assert (await place.console.progress()).done == 3
        assert await place.frontier.finished()


async def test_j1_a_kill_between_the_settle_and_the_rows_leaves_neither(anywhere: str, monkeypatch: Any) -> None:
    async with Place(anywhere) as place:
        [lease] = await place.leases(1)

        async def die(connection: Any, parcel: Any) -> None:
            """The server ends the session in the middle of the transaction, as after a crash of the worker."""
            number = await connection.fetchval("SELECT pg_backend_pid()")
            await ask(place.url, "SELECT pg_terminate_backend($1)", number)
            await connection.fetchval("SELECT 1")

        with monkeypatch.context() as broken, pytest.raises(FrontierError):
            broken.setattr(place.sink, "put_with", die)
            await place.joint.settle("w", [page(lease, place.job)])

        progress = await place.console.progress()
        assert (progress.leased, progress.done) == (1, 0)
        assert await place.keys() == []
        assert await place.joint.settle("w", [page(lease, place.job)]) == [Settled.OK]
        assert await place.keys() == [lease.task.url]


async def test_j1_a_kill_after_the_rows_leaves_neither(anywhere: str, monkeypatch: Any) -> None:
    async with Place(anywhere) as place:
        [lease] = await place.leases(1)
        put = place.sink.put_with

        async def store_and_die(connection: Any, parcel: Any) -> None:
            await put(connection, parcel)
            raise asyncpg.ConnectionDoesNotExistError("killed")

        with monkeypatch.context() as broken, pytest.raises(FrontierError):
            broken.setattr(place.sink, "put_with", store_and_die)
            await place.joint.settle("w", [page(lease, place.job)])

        assert await place.keys() == []
        assert (await place.console.progress()).leased == 1


async def test_j2_a_stale_token_writes_no_rows_and_no_visit(everywhere: str) -> None:
    async with Place(everywhere) as place:
        stale, live = await place.leases(2)
        await place.frontier.settle("w", [Settlement(stale, Done())])

        answers = await place.joint.settle("w", [page(stale, place.job), page(live, place.job)])

        assert answers == [Settled.STALE, Settled.OK]
        assert await place.keys() == [live.task.url]
        assert await place.visits() == 1


async def test_j2_of_two_workers_with_one_lease_one_stores_its_rows(anywhere: str) -> None:
    async with Place(anywhere) as place:
        [lease] = await place.leases(1)
        rows = [record(lease, by=name) for name in ("one", "other")]

        answers = await asyncio.gather(*(place.joint.settle("w", [page(lease, place.job, row)]) for row in rows))

        winner = [each for [each] in answers].index(Settled.OK)
        assert sorted(each for [each] in answers) == [Settled.OK, Settled.STALE]
        [[data]] = await ask(place.url, "SELECT data FROM {s}.records")
        assert json.loads(data) == rows[winner].data


async def test_j3_a_refused_row_is_named_and_nothing_is_stored(anywhere: str) -> None:
    async with Place(anywhere) as place:
        held = await place.leases(3)
        await ask(place.url, "ALTER TABLE {s}.records ADD CHECK (data::text NOT LIKE '%bad%')")
        pages = [page(held[0], place.job), page(held[1], place.job, record(held[1], x="bad")), page(held[2], place.job)]

        with pytest.raises(SinkRejects) as refused:
            await place.joint.settle("w", pages)

        assert set(refused.value.rejected) == {1}
        assert await place.keys() == []
        assert (await place.console.progress()).leased == 3
        pages[1] = Page(pages[1].settlement, [], pages[1].visits)
        assert await place.joint.settle("w", pages) == [Settled.OK] * 3
        assert len(await place.keys()) == 2


async def test_a_worker_commits_jointly_and_reports_refused_rows_with_their_page(anywhere: str) -> None:
    async with Place(anywhere) as place:
        held = await place.leases(4)
        await ask(place.url, "ALTER TABLE {s}.records ADD CHECK (data::text NOT LIKE '%bad%')")
        tools: Any = SimpleNamespace(
            job=place.job.id, validators=None, frontier=place.frontier, sink=place.sink, joint=place.joint, others=None,
            gate=SimpleNamespace(confirm=lambda tasks: None), meter=WorkMeter(), coverage=CoverageCount(), tracer=None,
            field_stats=None, archive=None,
        )  # fmt: skip
        commits = Committer("w", tools, WorkerPolicy(), set())
        for number, lease in enumerate(held):
            row = record(lease, x="bad" if number == 2 else "good")
            commits.add(FinishedVisit(lease=lease, outcome=Done(), records=[row]))
        commits.close()
        await commits.run()

        progress = await place.console.progress()
        assert progress.done == 4
        assert progress.tallies["records rejected"] == 1
        assert len(await place.keys()) == 3


def test_two_databases_are_refused() -> None:
    with pytest.raises(SettingsError, match="one_transaction needs one database"):
        backends.check_joint("postgresql://u@db/tasks", "postgresql://u@db/rows")
    with pytest.raises(SettingsError, match="same PostgreSQL database"):
        backends.check_joint("redis://db/0", "postgresql://u@db/rows")
    with pytest.raises(SettingsError, match="same PostgreSQL database"):
        backends.check_joint("postgresql://u@db/tasks", "jsonl:rows.jsonl")
    backends.check_joint("postgresql://u@db/shop?schema=tasks", "postgresql://u:secret@db/shop?schema=rows")

"""Rows and settles in one transaction (ports/joint_commit.py): frontier and sink are the same database."""

from collections.abc import Sequence

import asyncpg

from trotline.adapters.postgres.errors import is_of_a_row
from trotline.adapters.postgres.frontier import frontier_url, settle_leases
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.sink import PostgresSink, PreparedBatch
from trotline.adapters.postgres.sink_url import parse
from trotline.errors import SettingsError, SinkRejects, TrotlineError
from trotline.model.lease import Settled
from trotline.ports.joint_commit import Page


class _BadRow(TrotlineError):
    """A row was refused, so the transaction is rolled back."""


def check(frontier: str, sink: str) -> None:
    """SettingsError unless both URLs lead to one database, as one user."""
    one, other = frontier_url.parse(frontier), parse(sink)
    if one.dsn != other.dsn:
        raise SettingsError(
            f"one_transaction needs one database: the frontier is {one.public}, the sink {other.public}",
            hint="Write the same user, host, port and database in both URLs; the schema may differ. Or leave it out.",
        )


class PostgresJointCommit:
    """Keeps J1 to J3."""

    def __init__(self, store: JobStore, sink: PostgresSink) -> None:
        self._store = store
        self._sink = sink

    async def settle(self, worker: str, pages: Sequence[Page]) -> list[Settled]:
        prepared = await self._sink.prepared(
            [record for page in pages for record in page.records], [visit for page in pages for visit in page.visits]
        )
        try:
            return await self._settle(worker, pages, prepared)
        except _BadRow:
            # The server does not say which: found out in a transaction of its own, which is rolled back.
            if refused := await self._sink.refused(prepared):
                raise SinkRejects(refused) from None
            return await self._settle(worker, pages, await self._sink.with_good_lines(prepared))

    async def _settle(self, worker: str, pages: Sequence[Page], prepared: PreparedBatch) -> list[Settled]:
        async def step(tx: JobTransaction) -> list[Settled]:
            answers = await settle_leases.settle(tx, worker, [page.settlement for page in pages], self._store.chance)
            await self._put(tx, self._of_live(pages, answers, prepared))
            return answers

        return await self._store.change(step, timed=False)

    def _of_live(self, pages: Sequence[Page], answers: Sequence[Settled], prepared: PreparedBatch) -> PreparedBatch:
        """Without what belongs to stale leases (J2)."""
        if Settled.STALE not in answers:
            return prepared
        records, tokens, start = set[int](), set[int](), 0
        for page, answer in zip(pages, answers, strict=True):
            if answer is Settled.OK:
                records.update(range(start, start + len(page.records)))
                tokens.add(page.settlement.lease.token)
            start += len(page.records)
        visits = {visit.token for page in pages if page.settlement.lease.token in tokens for visit in page.visits}
        return self._sink.part_of(prepared, records, visits)

    async def _put(self, tx: JobTransaction, prepared: PreparedBatch) -> None:
        try:
            await self._sink.put_with(tx.db, prepared)
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            if not is_of_a_row(error):
                raise
            raise _BadRow("a row was refused") from error

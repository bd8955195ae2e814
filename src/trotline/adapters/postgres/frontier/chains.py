"""Chains: a step is queued when the one before it is done.

The table `step` has a row for each step of a chain that has not ended, in the order of the tasks' ids. The first one
is the chain's head: waiting, delayed or leased like any task, or dead. All others wait for it in `chained_N`, or are
dead because it is. A call that adds a step or ends one has the chain's lock: otherwise a step could be added behind a
head that is done at the same moment, and wait for ever.
"""

import zlib
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from trotline.adapters.postgres.frontier.combined_statement import columns
from trotline.adapters.postgres.frontier.schema import ID_BITS, MOST_AT_ONCE
from trotline.adapters.postgres.frontier.storable_text import stored_text
from trotline.adapters.postgres.frontier.task_rows import TASK, Held, Late, TaskRow
from trotline.model import task_json
from trotline.model.time import Moment
from trotline.rules import chain_failures

if TYPE_CHECKING:
    from trotline.adapters.postgres.frontier.job_transaction import JobTransaction

LOCKS = 64
"""Chains of a job share so many locks: a lock for each would fill the server's table of locks."""

LONGEST_KEY = 255
"""Bytes of a chain's name that is its key. An index has room for 2,704 bytes, and a name may have 4,000."""
_COLUMNS = ", ".join(f"t.{column.strip()}" for column in TASK.split(","))
_LOCK = "SELECT pg_advisory_xact_lock(hashtext(current_schema() || ' chain'), key) FROM unnest($1::integer[]) AS key"


def key_of(name: str) -> str:
    """The chain's name in the tables: a long one is a hash, after a character that no name has. The key of a key is
    the same."""
    name = stored_text(name)
    encoded = name.encode()
    return name if len(encoded) <= LONGEST_KEY else f"\x1f{sha256(encoded).hexdigest()}"


async def lock(tx: "JobTransaction", names: Iterable[str]) -> None:
    """Lock these chains; before lanes are locked, and in one call. Waits for other transactions."""
    buckets = {zlib.crc32(key_of(name).encode()) % LOCKS for name in names if name} - tx.chain_locks
    if buckets:
        await tx.db.execute(_LOCK, sorted(_key(tx.job, bucket) for bucket in buckets))
        tx.chain_locks |= buckets


def _key(job: int, bucket: int) -> int:
    return (job * LOCKS + bucket) % (1 << 31)


async def lanes_behind(tx: "JobTransaction", names: Collection[str]) -> list[int]:
    """Lanes in which steps of these locked chains wait for others: to be locked with those of a step that is buried."""
    if not names:
        return []
    rows = await tx.db.fetch(
        f"SELECT DISTINCT lane FROM chained_{tx.job} WHERE id IN"
        " (SELECT task FROM step WHERE job = $1 AND chain = ANY($2::text[]))",
        tx.job,
        list(names),
    )
    return [row[0] for row in rows]


async def admit(tx: "JobTransaction", steps: Sequence[tuple[TaskRow, Moment]]) -> None:
    """Steps that were admitted, with their due times, in the order of the call; their chains and lanes are locked. A
    step is queued if its chain has no other one, waits behind those that it has, and dies if they do.

    Their ids are drawn here: one drawn before the chain was locked could come before the chain's head.
    """
    heads, base = await _heads(tx, {row.chain for row, _ in steps})
    joined: list[tuple[str, int]] = []
    for place, (row, due) in enumerate(steps):
        if place and place % MOST_AT_ONCE == 0:
            base = await tx.db.fetchval("SELECT nextval('task_id')")
        step = row._replace(id=base << ID_BITS | place % MOST_AT_ONCE)
        failed = heads.get(step.chain)
        if failed is None:
            tx.queue(step, due)
            heads[step.chain] = ""
        elif failed:
            tx.bury(step, failed)
            tx.tallies[chain_failures.TALLY] += 1
        else:
            tx.queue_chained(step, due)
        joined.append((step.chain, step.id))
    insert = "INSERT INTO step (job, chain, task) SELECT %s::integer, * FROM unnest(%s::text[], %s::bigint[])"
    tx.more.append((insert, [tx.job, *columns(joined)]))


async def _heads(tx: "JobTransaction", names: Collection[str]) -> tuple[dict[str, str], int]:
    """Chains with a head, and the reason with which steps die that come now: empty if the head is alive. And a number
    for the ids of new steps."""
    rows = await tx.db.fetch(
        "SELECT c.chain, s.task, g.why, g.body, n.number FROM (SELECT nextval('task_id') AS number) n"
        " CROSS JOIN unnest($2::text[]) AS c(chain)"
        " LEFT JOIN LATERAL (SELECT task FROM step WHERE job = $1 AND chain = c.chain ORDER BY task LIMIT 1) s ON true"
        f" LEFT JOIN grave_{tx.job} g ON g.id = s.task",
        tx.job,
        list(names),
    )
    buried = {grave.row.id: grave for grave in tx.graves}
    found: dict[str, str] = {}
    for chain, task, why, body, _ in rows:
        if (now := buried.get(task)) is not None:
            found[chain] = chain_failures.failed(url_of(now.row.body), now.why)
        elif task is not None:
            found[chain] = "" if why is None else chain_failures.failed(url_of(body), why)
    return found, rows[0][-1]


async def take_next(tx: "JobTransaction", ended: Sequence[Held]) -> list[Late]:
    """These steps of locked chains are done: the next ones of the chains of which they were the heads, for
    `queue_next`. Their lanes are to be locked."""
    if not ended:
        return []
    # Without a row in `step`: a page that is read again for its records. It is in the chain no longer.
    rows = await tx.db.fetch(
        "WITH ended AS (DELETE FROM step WHERE task = ANY($2::bigint[]) RETURNING chain),"
        " following AS (SELECT n.id FROM ended CROSS JOIN LATERAL ("
        f"SELECT t.id FROM step s JOIN chained_{tx.job} t ON t.id = s.task"
        " WHERE s.job = $1 AND s.chain = ended.chain ORDER BY s.task LIMIT 1) n)"
        f" DELETE FROM chained_{tx.job} t USING following WHERE t.id = following.id RETURNING {_COLUMNS}, t.due",
        tx.job,
        [held.task for held in ended],
    )
    return sorted(Late(TaskRow(*row[:-1]), row[-1]) for row in rows)


def queue_next(tx: "JobTransaction", steps: Sequence[Late]) -> None:
    """Queue these steps, whose lanes are locked. They were counted as waiting before."""
    for late in steps:
        row, due = late
        if due > tx.now:
            tx.late.append(late)
        else:
            tx.lane(row.lane).later -= 1
            tx.enqueue(row)


async def bury_followers(tx: "JobTransaction", task_id: int, chain: str, body: bytes, why: str) -> None:
    """A task was buried: if it is the head of a chain, bury the steps behind it."""
    # Mostly it is locked already: now may be too late for the order of locks, and then the transaction is repeated.
    await lock(tx, [chain])
    rows = await tx.db.fetch(
        f"DELETE FROM chained_{tx.job} WHERE id IN (SELECT task FROM step WHERE job = $1 AND chain = $2)"
        f" AND EXISTS (SELECT 1 FROM step WHERE task = $3) RETURNING {TASK}",
        tx.job,
        chain,
        task_id,
    )
    followers = [TaskRow(*row) for row in rows]
    if not followers:
        return
    await tx.lock_lanes(row.lane for row in followers)
    reason = chain_failures.failed(url_of(body), why)
    for row in followers:
        tx.lane(row.lane).later -= 1
        tx.bury(row, reason)
    tx.waiting -= len(followers)
    tx.tallies[chain_failures.TALLY] += len(followers)


def url_of(body: bytes) -> str:
    try:
        return task_json.decode(body).url
    except task_json.Undecodable:
        return "(undecodable)"

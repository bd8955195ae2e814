"""Makes a PostgreSQL frontier's queue long within minutes: ten million puts take hours.

The rows are those that puts would have left: tasks of `frontier_load`, in lanes that exist, dealt to them in a random
order, added in the order of their ids, with fingerprints that are as good as random.
"""

from typing import Any

from bench.frontier_load import BATCH, tasks
from trotline.adapters.postgres.frontier.schema import ID_BITS
from trotline.model import task_json
from trotline.model.task import LATER, NORMAL, SOON, Task

_AT_ONCE = 50_000
_ADD = f"""
WITH l AS MATERIALIZED (SELECT array_agg(id) AS ids, array_agg(name) AS names, count(*) AS n FROM lane),
made AS MATERIALIZED (
    SELECT g AS number, hashint8extended(g, 7) AS fp, 1 + floor(random() * l.n)::integer AS lane,
        (ARRAY[{SOON}, {NORMAL}, {LATER}])[1 + floor(random() * 3)::integer] AS level
    FROM l, generate_series($2::bigint, $2 + $3 - 1) g
),
s AS (INSERT INTO seen_1 (fp) SELECT fp FROM made)
INSERT INTO waiting_1 (lane, level, id, attempt, deaths, kills, fp, chain, body)
SELECT l.ids[made.lane], made.level, ($1::bigint << {ID_BITS}) + made.number - $2, 0, 0, 0, made.fp, '',
    $4::bytea || convert_to(rpad('https://' || l.names[made.lane] || '/stored/' || made.number || '/', 60, 'x'), 'UTF8')
    || $5::bytea || convert_to(l.names[made.lane], 'UTF8')
    || $6::bytea || int8send(made.fp) || $7::bytea || set_byte('\\x00'::bytea, 0, made.level) || $8::bytea
FROM made, l ORDER BY made.number
"""
_TURNS = """
UPDATE turn SET waiting = w.n, level = w.level, position = 0
FROM (SELECT lane, count(*) AS n, min(level) AS level FROM waiting_1 GROUP BY lane) w WHERE turn.lane = w.lane
"""


async def fill(db: Any, first: int, count: int) -> None:
    """Add so many tasks to the queue of the first job, all lanes of which have some; `first`: no number of an earlier
    call. The connection's search path is the frontier's schema."""
    pieces = _pieces(next(tasks(1, BATCH)))
    for start in range(first, first + count, _AT_ONCE):
        some = min(_AT_ONCE, first + count - start)
        base = await db.fetchval("SELECT setval('task_id', nextval('task_id') + $1) - $1", (some >> ID_BITS) + 1)
        await db.execute(_ADD, base, start, some, *pieces)
    await db.execute(_TURNS)
    await db.execute("UPDATE counter SET waiting = waiting + $1 WHERE job = 1 AND stripe = 0", count)


def _pieces(task: Task) -> list[bytes]:
    """What is around the URL, the lane, the fingerprint and the priority of a stored task; all have one length."""
    before, rest = task_json.encode(task).split(task.url.encode())
    route, rest = rest.split(task.lane.encode())
    key, rest = rest.split(task.fingerprint.to_bytes(8, signed=True))
    level, last = rest.split(bytes([task.priority]), 1)
    return [before, route, key, level, last]

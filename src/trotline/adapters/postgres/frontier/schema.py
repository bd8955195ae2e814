"""The tables of a frontier in PostgreSQL. All are in one schema, which every transaction names as its search path.

job      one row per job; its counters are in `counter`
counter  waiting + leased + done + dead = admitted, as the sum over stripes: one row would be a queue of its own
pace     rate-limit buckets of all jobs (rules/pace.py), and visits in flight. Its row is the lock of its lanes
lane     a job's tasks in one of them
turn     one row per lane with waiting tasks: by best level and time. The row whose index entries die is small
held     leased tasks, with their bodies
waiting_N, late_N, chained_N, grave_N, seen_N   the tasks and the fingerprints of job N: dropped as a whole with it
step     the steps of chains that have not ended (chains.py)
worker   workers: last heartbeat, WorkerInfo, and how their leases ended
idle     workers that wait for work: notifications are sent only if there are some
pool, pool_member, ring, identity   proxy pools, as in the SQLite frontier
tally, example, reject, note, session, upgrade   as in the SQLite frontier; names of notes are bytes: text has no NUL
office, tick   elections, and the last tick of each schedule (leadership.py)
retired  deleted jobs of which rows are left (delete_job.py)
cache    what one worker fetched for all (shared_cache.py)

turn.ready_at: when the lane may run next. Of a lane that may run now, when it was served last or became ready, so its
order is also the order of turns (F15). Infinity: at its limit of concurrency, or paused. turn.served: the token of its
last lease, for lanes served at the same moment; less than that before the first one. turn.position: the lane's waiting
tasks of this level have larger ids, so a lease does not walk over the index entries of tasks that are gone and not
vacuumed yet. turn.waiting: their number, of all levels; lane.later: of the lane's tasks that are delayed, wait for
another step, or at a broker.

pool.most: `member_concurrency`, and ring.dealt: that of its state, for queries. Members in flight (place 2) are in no
index of due times.

A task's id is a number of the sequence task_id for each call, followed by its place in the call (ID_BITS). A token is
a number of the sequence `token`, the place (ID_BITS), and TOKEN_CHANCE random bits: a server that crashed may repeat
numbers that it had not flushed.
"""

VERSION = 2

RUNNING, PAUSED, DRAINING, CANCELLED = 0, 1, 2, 3
"""The state of a job or a lane: its column `paused`."""

STRIPES = 64
"""Rows of `counter` per job."""
ID_BITS = 12
TOKEN_CHANCE = 8
MOST_AT_ONCE = 1 << ID_BITS
"""Tasks of one statement."""

_VACUUM = (
    "autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,"
    " autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.5"
)
CHURN = f"autovacuum_vacuum_scale_factor = 0, {_VACUUM}"
"""Rows come and go all the time: vacuumed by number, not by share."""
QUEUE = f"autovacuum_vacuum_scale_factor = 0.02, {_VACUUM}"
"""A vacuum reads the whole index. Ten million tasks may wait, and a lease reads from a lane's position on: dead rows
before it cost nothing but space."""

TABLES = f"""
CREATE TABLE meta (version integer NOT NULL);
CREATE TABLE job (
    id serial PRIMARY KEY,
    name text NOT NULL UNIQUE,
    spider text NOT NULL,
    version text NOT NULL,
    rules bytea NOT NULL,
    started_at float8 NOT NULL,
    finished_at float8,
    announced boolean NOT NULL DEFAULT false,
    sealed boolean NOT NULL DEFAULT false,
    paused smallint NOT NULL DEFAULT 0,
    state_at float8,
    budget bytea
);
CREATE TABLE counter (
    job integer NOT NULL,
    stripe smallint NOT NULL,
    waiting bigint NOT NULL DEFAULT 0,
    leased bigint NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    dead bigint NOT NULL DEFAULT 0,
    leases bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job, stripe)
) WITH (fillfactor = 10, {CHURN});
CREATE TABLE pace (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    running integer NOT NULL DEFAULT 0,
    lane bytea NOT NULL
) WITH (fillfactor = 40, {CHURN});
CREATE TABLE lane (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job integer NOT NULL,
    name text NOT NULL,
    pace bigint NOT NULL,
    pool text NOT NULL DEFAULT '',
    member bigint NOT NULL DEFAULT 0,
    later bigint NOT NULL DEFAULT 0,
    paused smallint NOT NULL DEFAULT 0,
    waits smallint NOT NULL DEFAULT 0,
    UNIQUE (job, name)
) WITH (fillfactor = 40, {CHURN});
CREATE INDEX lane_pace ON lane (pace);
CREATE INDEX lane_waits ON lane (pool, member) WHERE waits = 1;
CREATE TABLE turn (
    lane bigint PRIMARY KEY,
    job integer NOT NULL,
    pool text NOT NULL,
    pace bigint NOT NULL,
    level integer NOT NULL,
    ready_at float8 NOT NULL,
    served bigint NOT NULL DEFAULT 0,
    position bigint NOT NULL DEFAULT 0,
    waiting bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, {CHURN});
CREATE INDEX turn_order ON turn (job, pool, level, ready_at, served);
CREATE TABLE held (
    token bigint PRIMARY KEY,
    job integer NOT NULL,
    worker text NOT NULL,
    task bigint NOT NULL,
    lane bigint NOT NULL,
    level integer NOT NULL,
    attempt integer NOT NULL,
    deaths integer NOT NULL,
    kills integer NOT NULL,
    member bigint,
    chain text NOT NULL,
    fp bigint NOT NULL,
    leased_at float8 NOT NULL,
    starts_at float8 NOT NULL,
    body bytea NOT NULL
) WITH ({CHURN});
CREATE INDEX held_worker ON held (job, worker);
CREATE TABLE worker (
    job integer NOT NULL,
    id text NOT NULL,
    beat_at float8 NOT NULL,
    about bytea,
    done bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job, id)
) WITH (fillfactor = 50, {CHURN});
CREATE TABLE idle (
    job integer NOT NULL,
    worker text NOT NULL,
    until float8 NOT NULL,
    PRIMARY KEY (job, worker)
) WITH (fillfactor = 50, {CHURN});
CREATE TABLE step (
    job integer NOT NULL,
    chain text NOT NULL,
    task bigint NOT NULL UNIQUE,
    PRIMARY KEY (job, chain, task)
);
CREATE TABLE pool (name text PRIMARY KEY, version float8 NOT NULL, rules bytea NOT NULL, most bigint);
CREATE TABLE pool_member (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pool text NOT NULL,
    member bigint NOT NULL,
    weight integer NOT NULL,
    faults integer NOT NULL DEFAULT 0,
    down_until float8 NOT NULL DEFAULT 0,
    next_start float8 NOT NULL DEFAULT 0,
    running integer NOT NULL DEFAULT 0,
    uses bigint NOT NULL DEFAULT 0,
    window_began float8 NOT NULL DEFAULT 0,
    state bytea,
    last_pace bigint NOT NULL DEFAULT 0,
    yield_until float8 NOT NULL DEFAULT 0,
    UNIQUE (pool, member)
) WITH (fillfactor = 50, {CHURN});
CREATE INDEX pool_member_order ON pool_member (pool, seq);
CREATE TABLE ring (
    pace bigint PRIMARY KEY,
    pool text NOT NULL,
    state bytea NOT NULL,
    position bigint NOT NULL,
    dealt bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, {CHURN});
CREATE INDEX ring_pool ON ring (pool);
CREATE TABLE identity (
    pace bigint NOT NULL,
    member bigint NOT NULL,
    place smallint NOT NULL,
    due float8 NOT NULL,
    position bigint NOT NULL,
    banned_at float8 NOT NULL,
    quality integer NOT NULL,
    uses bigint NOT NULL,
    good bigint NOT NULL,
    strikes integer NOT NULL,
    slow integer NOT NULL,
    PRIMARY KEY (pace, member)
) WITH (fillfactor = 50, {CHURN});
CREATE INDEX identity_due ON identity (pace, place, due, position) WHERE place < 2;
CREATE TABLE tally (
    job integer NOT NULL,
    name text NOT NULL,
    stripe smallint NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (job, name, stripe)
) WITH (fillfactor = 50, {CHURN});
CREATE TABLE example (job integer NOT NULL, name text NOT NULL, url text NOT NULL, PRIMARY KEY (job, name));
CREATE TABLE reject (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job integer NOT NULL,
    fingerprint bigint NOT NULL,
    url text NOT NULL,
    route text NOT NULL,
    kind text NOT NULL,
    why text NOT NULL,
    data text NOT NULL,
    seen_at float8 NOT NULL,
    body bytea
);
CREATE INDEX reject_job ON reject (job, id);
CREATE TABLE session (job integer NOT NULL, name text NOT NULL, home text NOT NULL, PRIMARY KEY (job, name));
CREATE TABLE note (
    job integer NOT NULL,
    name bytea NOT NULL,
    data bytea NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (job, name)
);
CREATE TABLE upgrade (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job integer NOT NULL,
    version text NOT NULL,
    UNIQUE (job, version)
);
CREATE TABLE office (name text PRIMARY KEY, epoch bigint NOT NULL, holder text NOT NULL, ends float8 NOT NULL);
CREATE TABLE tick (
    office text PRIMARY KEY,
    at float8 NOT NULL,
    schedule text NOT NULL,
    job text NOT NULL,
    ran float8 NOT NULL
);
CREATE UNLOGGED TABLE cache (
    kind text NOT NULL,
    name text NOT NULL,
    value bytea,
    put_at float8 NOT NULL DEFAULT 0,
    until float8 NOT NULL,
    fetcher text NOT NULL DEFAULT '',
    fetched_until float8 NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, name)
);
CREATE INDEX cache_until ON cache (kind, until);
CREATE TABLE retired (job integer PRIMARY KEY, name text NOT NULL);
CREATE SEQUENCE task_id;
CREATE SEQUENCE token;
INSERT INTO meta (version) VALUES ({VERSION});
"""

_TASK = (
    "attempt integer NOT NULL, deaths integer NOT NULL, kills integer NOT NULL, fp bigint NOT NULL,"
    " chain text NOT NULL, body bytea NOT NULL"
)


def tables_of_job(job: int) -> str:
    """Creates the tables of one job. Their names end in its number, so no other job's table is locked."""
    return f"""
CREATE TABLE waiting_{job} (
    lane bigint NOT NULL, level integer NOT NULL, id bigint NOT NULL, {_TASK}, PRIMARY KEY (lane, level, id)
) WITH ({QUEUE});
CREATE TABLE late_{job} (
    due float8 NOT NULL, id bigint NOT NULL, lane bigint NOT NULL, level integer NOT NULL, {_TASK},
    PRIMARY KEY (due, id)
) WITH ({CHURN});
CREATE TABLE chained_{job} (
    id bigint PRIMARY KEY, lane bigint NOT NULL, level integer NOT NULL, due float8 NOT NULL, {_TASK}
) WITH ({CHURN});
CREATE TABLE grave_{job} (
    id bigint PRIMARY KEY, lane bigint NOT NULL, level integer NOT NULL, {_TASK},
    why text NOT NULL, detail text NOT NULL, died_at float8 NOT NULL
);
CREATE INDEX grave_{job}_order ON grave_{job} (died_at, id);
CREATE TABLE seen_{job} (fp bigint PRIMARY KEY);
INSERT INTO counter (job, stripe) SELECT {job}, generate_series(0, {STRIPES - 1});
"""


_OF_EVERY_JOB = ("waiting", "late", "chained", "grave", "seen")
_OF_SHELVES = ("parcel", "unsent", "shelf", "onshelf")
"""Only of a job whose tasks wait at a broker (shelf_tables.py)."""


def drop_tables_of_job(job: int) -> str:
    names = ", ".join(f"{table}_{job}" for table in (*_OF_EVERY_JOB, *_OF_SHELVES))
    return f"DROP TABLE IF EXISTS {names};"

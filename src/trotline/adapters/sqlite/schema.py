"""The tables of a frontier file.

job     one row per job, with its counters: waiting + leased + done + dead = admitted
seen    fingerprints ever admitted; all that remains of a done task
pace    rate-limit buckets of all jobs: their state (rules/pace.py), and the number of visits in flight
lane    a job's tasks in one of them: ready (state 1, by best priority and turn), resting (state 2, by wake time)
pool    proxy pools: the version in force, and its rules
pool_member  the members of a pool, in the order in which they were added, with their state over all lanes
ring    the proxy pool of a pace as a whole (rules/proxy_ring.py)
identity  a member that has been used in a pace: in the ring by due time (place 0), at its head (1), in flight (2)
task    waiting (0), delayed (1), leased (2), dead (3), or waiting for an earlier step of its chain (4)
step    the steps of chains that have not ended (chains.py)
worker  workers: last heartbeat, WorkerInfo, and how their leases ended
tally   counters by name
example the first URL of some tallies
reject  records that failed validation
session the process that is logged in to it
upgrade code versions that joined a job after its start
note    small values of operators' programs, with their version
anchor  the file's clock: time = host's uptime clock + offset, so that jumps of the wall clock have no effect
"""

VERSION = 3

WAITING, DELAYED, LEASED, DEAD, CHAINED = 0, 1, 2, 3, 4
"""Task states. Delayed is waiting with a due time in the future, chained is waiting for another step of its chain."""

RUNNING, PAUSED, DRAINING, CANCELLED = 0, 1, 2, 3
"""The state of a job or a lane: its column `paused`. An older version, which knows only pauses, leases nothing of a job
that drains or is cancelled."""

IDLE, READY, RESTING, FULL = 0, 1, 2, 3
"""Lane states: nothing waits; ready; ready from `wake` on; at its concurrency limit, or paused."""

TOKEN_BITS = 24
"""A token is the task's row id, followed by the low bits of a counter that only grows."""

TABLES = """
CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    spider TEXT NOT NULL,
    version TEXT NOT NULL,
    rules BLOB NOT NULL,
    started_at REAL NOT NULL,
    finished_at REAL,
    announced INTEGER NOT NULL DEFAULT 0,
    sealed INTEGER NOT NULL DEFAULT 0,
    paused INTEGER NOT NULL DEFAULT 0,
    waiting INTEGER NOT NULL DEFAULT 0,
    leased INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    leases INTEGER NOT NULL DEFAULT 0,
    turn INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE seen (job INTEGER NOT NULL, fingerprint INTEGER NOT NULL, PRIMARY KEY (job, fingerprint)) WITHOUT ROWID;
CREATE TABLE pace (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    running INTEGER NOT NULL DEFAULT 0,
    lane BLOB NOT NULL
);
CREATE TABLE lane (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    name TEXT NOT NULL,
    pace INTEGER NOT NULL,
    pool TEXT NOT NULL DEFAULT '',
    state INTEGER NOT NULL DEFAULT 0,
    best INTEGER,
    turn INTEGER NOT NULL DEFAULT 0,
    wake REAL NOT NULL DEFAULT 0,
    waiting INTEGER NOT NULL DEFAULT 0,
    paused INTEGER NOT NULL DEFAULT 0,
    UNIQUE (job, name)
);
CREATE INDEX lane_pace ON lane (pace);
CREATE INDEX lane_ready ON lane (job, pool, best, turn) WHERE state = 1;
CREATE INDEX lane_resting ON lane (job, pool, wake) WHERE state = 2;
CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due REAL NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    deaths INTEGER NOT NULL DEFAULT 0,
    kills INTEGER NOT NULL DEFAULT 0,
    worker TEXT,
    token INTEGER,
    member INTEGER,
    fingerprint INTEGER NOT NULL,
    body BLOB NOT NULL,
    why TEXT,
    detail TEXT,
    died_at REAL
);
CREATE INDEX task_waiting ON task (lane, priority, id) WHERE state = 0;
CREATE INDEX task_delayed ON task (job, due) WHERE state = 1;
CREATE INDEX task_leased ON task (worker) WHERE state = 2;
CREATE INDEX task_dead ON task (job, died_at, id) WHERE state = 3;
CREATE TABLE pool (name TEXT PRIMARY KEY, version REAL NOT NULL, rules BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE pool_member (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    pool TEXT NOT NULL,
    member INTEGER NOT NULL,
    weight INTEGER NOT NULL,
    faults INTEGER NOT NULL DEFAULT 0,
    down_until REAL NOT NULL DEFAULT 0,
    next_start REAL NOT NULL DEFAULT 0,
    running INTEGER NOT NULL DEFAULT 0,
    UNIQUE (pool, member)
);
CREATE INDEX pool_member_order ON pool_member (pool, seq);
CREATE INDEX pool_member_down ON pool_member (pool, down_until) WHERE down_until > 0;
CREATE TABLE ring (
    pace INTEGER PRIMARY KEY,
    pool TEXT NOT NULL,
    state BLOB NOT NULL,
    position INTEGER NOT NULL
);
CREATE INDEX ring_pool ON ring (pool);
CREATE TABLE identity (
    pace INTEGER NOT NULL,
    member INTEGER NOT NULL,
    place INTEGER NOT NULL,
    due REAL NOT NULL,
    position INTEGER NOT NULL,
    banned_at REAL NOT NULL,
    quality INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    good INTEGER NOT NULL,
    strikes INTEGER NOT NULL,
    slow INTEGER NOT NULL,
    PRIMARY KEY (pace, member)
) WITHOUT ROWID;
CREATE INDEX identity_due ON identity (pace, place, due, position);
CREATE TABLE worker (
    id TEXT NOT NULL,
    job INTEGER NOT NULL,
    seen_at REAL NOT NULL,
    process TEXT NOT NULL,
    PRIMARY KEY (job, id)
) WITHOUT ROWID;
CREATE TABLE tally (
    job INTEGER NOT NULL,
    name TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (job, name)
) WITHOUT ROWID;
CREATE TABLE reject (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    url TEXT NOT NULL,
    route TEXT NOT NULL,
    kind TEXT NOT NULL,
    why TEXT NOT NULL,
    data TEXT NOT NULL,
    seen_at REAL NOT NULL
);
CREATE TABLE anchor (id INTEGER PRIMARY KEY CHECK (id = 1), boot TEXT NOT NULL, offset REAL NOT NULL);
"""

TRIGGER = """
CREATE TRIGGER lane_gone AFTER DELETE ON lane BEGIN
    UPDATE pace SET running =
        (SELECT count(*) FROM task t JOIN lane l ON l.id = t.lane WHERE t.state = 2 AND l.pace = OLD.pace)
        WHERE id = OLD.pace;
    UPDATE lane SET state = 1 WHERE pace = OLD.pace AND state = 3 AND paused <> 1 AND best IS NOT NULL;
END
"""
"""Deleting a job releases its places in shared lanes, and makes waiting lanes ready."""

ADDED_TABLES = {
    "example": """
CREATE TABLE IF NOT EXISTS example (
    job INTEGER NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    PRIMARY KEY (job, name)
) WITHOUT ROWID
""",
    "step": """
CREATE TABLE IF NOT EXISTS step (
    job INTEGER NOT NULL,
    chain TEXT NOT NULL,
    task INTEGER NOT NULL UNIQUE,
    PRIMARY KEY (job, chain, task)
) WITHOUT ROWID
""",
    "session": """
CREATE TABLE IF NOT EXISTS session (
    job INTEGER NOT NULL,
    name TEXT NOT NULL,
    home TEXT NOT NULL,
    PRIMARY KEY (job, name)
) WITHOUT ROWID
""",
    "note": """
CREATE TABLE IF NOT EXISTS note (
    job INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (job, name)
)
""",
    "upgrade": """
CREATE TABLE IF NOT EXISTS upgrade (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    version TEXT NOT NULL,
    UNIQUE (job, version)
)
""",
}
"""Added tables, created where a file lacks them. Older versions of this format do not need them."""

ADDED_COLUMNS = {
    "job": {"budget": "BLOB", "state_at": "REAL"},
    "worker": {
        "done": "INTEGER NOT NULL DEFAULT 0",
        "failed": "INTEGER NOT NULL DEFAULT 0",
        "about": "BLOB",
    },
    "reject": {"body": "BLOB"},
    "task": {"leased_at": "REAL", "starts_at": "REAL"},
    "lane": {"member": "INTEGER NOT NULL DEFAULT 0", "waits": "INTEGER NOT NULL DEFAULT 0"},
    "pool_member": {
        "uses": "INTEGER NOT NULL DEFAULT 0",
        "window_began": "REAL NOT NULL DEFAULT 0",
        "state": "BLOB",
        "last_pace": "INTEGER NOT NULL DEFAULT 0",
        "yield_until": "REAL NOT NULL DEFAULT 0",
    },
}
"""Added columns, created where a file lacks them. Older versions of this format do not need them.

task.leased_at, starts_at: of the last lease; NULL: an older version leased it
lane.member: the one account that visits it, 0 if any does; lane.waits: for an account that another lane has
pool_member.uses, window_began: starts within the window of `PoolRules.uses_window`
pool_member.state: the session of an account
pool_member.last_pace, yield_until: the lane that returned an account lets others have it until then
"""

ADDED_INDEXES = ("CREATE INDEX IF NOT EXISTS lane_waits ON lane (pool, member) WHERE waits = 1",)
"""Indexes over added columns, created with them."""

-- The ledger: one line per visit, in partitions by time. The partitions are made by the sink, ahead of time.

CREATE TABLE {schema}.visits (
    job text NOT NULL,
    token bigint NOT NULL,
    leased_at timestamptz NOT NULL,
    site text NOT NULL,
    url text NOT NULL,
    fingerprint bigint NOT NULL,
    route text NOT NULL,
    lane text NOT NULL,
    worker text NOT NULL,
    attempt integer NOT NULL,
    depth integer NOT NULL,
    parent text NOT NULL,
    found_at timestamptz NOT NULL,
    proxy text NOT NULL,
    status integer NOT NULL,
    took double precision NOT NULL,
    size bigint NOT NULL,
    verdict text NOT NULL,
    outcome text NOT NULL,
    why text NOT NULL,
    records integer NOT NULL,
    children integer NOT NULL,
    moved_to text NOT NULL,
    -- The moment is part of it because every partition must be able to tell by itself.
    PRIMARY KEY (job, token, leased_at)
) PARTITION BY RANGE (leased_at);

CREATE INDEX visits_fingerprint ON {schema}.visits (fingerprint);
CREATE INDEX visits_url ON {schema}.visits USING hash (url);
CREATE INDEX visits_leased_at ON {schema}.visits USING brin (leased_at) WITH (autosummarize = on);

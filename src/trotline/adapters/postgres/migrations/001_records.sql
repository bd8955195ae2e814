-- Records, what they were before, and which fields each kind has.

CREATE TABLE {schema}.records (
    site text NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    data jsonb NOT NULL,
    url text NOT NULL,
    host text NOT NULL,
    seen_at timestamptz NOT NULL,
    first_seen_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    job text NOT NULL,
    PRIMARY KEY (site, kind, key)
-- Room on every page: a row that is seen again unchanged is rewritten beside itself, and no index is touched.
) WITH (fillfactor = 90);

-- A hash, because a URL may be longer than a btree can hold.
CREATE INDEX records_url ON {schema}.records USING hash (url);
CREATE INDEX records_host ON {schema}.records (host);
CREATE INDEX records_changed_at ON {schema}.records (changed_at);
-- The time of the last sighting changes with every visit: this index costs next to nothing to keep.
CREATE INDEX records_seen_at ON {schema}.records USING brin (seen_at) WITH (autosummarize = on);

CREATE TABLE {schema}.history (
    site text NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    data jsonb NOT NULL,
    url text NOT NULL,
    since timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    replaced_at timestamptz NOT NULL,
    job text NOT NULL
);

CREATE INDEX history_of ON {schema}.history (site, kind, key, since);
CREATE INDEX history_replaced_at ON {schema}.history USING brin (replaced_at) WITH (autosummarize = on);

CREATE FUNCTION {schema}.keep_history() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO {schema}.history (site, kind, key, data, url, since, seen_at, replaced_at, job)
    VALUES (old.site, old.kind, old.key, old.data, old.url, old.changed_at, old.seen_at, new.seen_at, old.job);
    RETURN NULL;
END
$body$;

CREATE TRIGGER keep_history AFTER UPDATE OF data ON {schema}.records
    FOR EACH ROW WHEN (old.data IS DISTINCT FROM new.data) EXECUTE FUNCTION {schema}.keep_history();

-- jsonb has an order of its own; this is the order in which the spider gave its fields.
CREATE TABLE {schema}.fields (
    number bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (kind, name)
);

-- Things: what records of one thing, from several pages or sites, were merged to. Made by `trotline merge`.

CREATE TABLE {schema}.things (
    id text COLLATE "C" PRIMARY KEY,
    kind text NOT NULL,
    data jsonb NOT NULL,
    provenance jsonb NOT NULL,
    sources integer NOT NULL,
    sites text[] NOT NULL,
    first_seen_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL
);

CREATE INDEX things_kind ON {schema}.things (kind);

CREATE TABLE {schema}.merge_sources (
    id bigint PRIMARY KEY,
    site text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    -- As a number: it is compared with the record's, and must not be rounded on the way.
    seen_at double precision NOT NULL,
    rule bigint NOT NULL,
    thing text COLLATE "C" NOT NULL,
    -- An index of merge_keys by source would cost as much as the table.
    keys bigint[] NOT NULL,
    UNIQUE (site, kind, key)
);

CREATE INDEX merge_sources_of ON {schema}.merge_sources (thing, site);

CREATE TABLE {schema}.merge_keys (key bigint NOT NULL, source bigint NOT NULL, PRIMARY KEY (key, source));

CREATE TABLE {schema}.merge_links (
    a bigint NOT NULL, b bigint NOT NULL, score double precision NOT NULL, PRIMARY KEY (a, b)
);
CREATE INDEX merge_links_of ON {schema}.merge_links (b);

CREATE TABLE {schema}.merge_verdicts (
    a bigint NOT NULL, b bigint NOT NULL, same boolean NOT NULL, decided_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (a, b)
);

CREATE TABLE {schema}.merge_state (version bigint NOT NULL, rule bigint NOT NULL);
INSERT INTO {schema}.merge_state VALUES (0, 0);

-- For people: every record with its thing.
CREATE VIEW {schema}.merged AS
    SELECT s.thing, s.kind, s.site, s.key, r.url, t.sources AS sources_of_thing, r.data AS data_of_source,
        t.data AS data_of_thing
    FROM {schema}.merge_sources AS s JOIN {schema}.things AS t ON t.id = s.thing
        LEFT JOIN {schema}.records AS r ON r.site = s.site AND r.kind = s.kind AND r.key = s.key;

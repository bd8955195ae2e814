"""The SQL of the merge store; {s} is the schema."""

_RECORD = (
    "r.site, r.kind, r.key, r.url, extract(epoch FROM r.seen_at)::float8, extract(epoch FROM r.first_seen_at)::float8,"
    " r.changes, r.data::text"
)
CHANGED = f"""
    SELECT {_RECORD}, m.id IS NOT NULL
    FROM {{s}}.records AS r LEFT JOIN {{s}}.merge_sources AS m USING (site, kind, key)
    WHERE (r.site, r.kind, r.key) > ($2, $3, $4)
        AND (m.id IS NULL OR m.seen_at <> extract(epoch FROM r.seen_at)::float8 OR m.changes <> r.changes
            OR m.rule <> $1)
        AND (cardinality($5::text[]) = 0 OR r.kind = ANY ($5::text[]))
    ORDER BY r.site, r.kind, r.key LIMIT $6
"""
GONE = """
    SELECT m.id FROM {s}.merge_sources AS m LEFT JOIN {s}.records AS r USING (site, kind, key)
    WHERE r.site IS NULL ORDER BY m.id LIMIT $1
"""
SOURCES = f"""
    SELECT m.id, {_RECORD}, true FROM {{s}}.merge_sources AS m JOIN {{s}}.records AS r USING (site, kind, key)
    WHERE m.id = ANY ($1::bigint[])
"""
KEYS = "SELECT id, keys FROM {s}.merge_sources WHERE id = ANY ($1::bigint[]) AND keys <> '{}'"
COUNT = "SELECT key, count(*) FROM {s}.merge_keys WHERE key = ANY ($1::bigint[]) GROUP BY key"
MEMBERS = "SELECT key, source FROM {s}.merge_keys WHERE key = ANY ($1::bigint[])"
LINKS = """
    SELECT a, b, score FROM {s}.merge_links WHERE a = ANY ($1::bigint[])
    UNION SELECT a, b, score FROM {s}.merge_links WHERE b = ANY ($1::bigint[])
"""
DECISIONS = "SELECT a, b, same FROM {s}.merge_verdicts"
NEXT_VERSION = """
    UPDATE {s}.merge_state SET version = version + 1, rule = coalesce($2::bigint, rule)
    WHERE version = coalesce($1::bigint, version) RETURNING version
"""
FORGET_KEYS = """
    DELETE FROM {s}.merge_keys AS k
    USING (SELECT id, unnest(keys) AS key FROM {s}.merge_sources WHERE id = ANY ($1::bigint[])) AS old
    WHERE k.key = old.key AND k.source = old.id
"""
FORGET_LINKS = "DELETE FROM {s}.merge_links WHERE a = ANY ($1::bigint[]) OR b = ANY ($1::bigint[])"
FORGET_THINGS = """
    DELETE FROM {s}.things WHERE id IN (SELECT thing FROM {s}.merge_sources WHERE id = ANY ($1::bigint[]))
"""
FORGET_SOURCES = "DELETE FROM {s}.merge_sources WHERE id = ANY ($1::bigint[])"
MOVE_SOURCES = """
    UPDATE {s}.merge_sources AS m SET thing = given.thing
    FROM unnest($1::bigint[], $2::text[]) AS given (id, thing) WHERE m.id = given.id
"""
PUT_KEYS = """
    INSERT INTO {s}.merge_keys (key, source)
    SELECT unnest(keys) AS key, id FROM {s}.merge_sources WHERE id = ANY ($1::bigint[]) ORDER BY key
"""
PUT_LINKS = "INSERT INTO {s}.merge_links (a, b, score) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::float8[])"
PUT_THINGS = """
    INSERT INTO {s}.things (id, kind, data, provenance, sources, sites, first_seen_at, seen_at)
    SELECT id, kind, data::jsonb, provenance::jsonb, sources, string_to_array(sites, E'\\n'), to_timestamp(first),
        to_timestamp(last)
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int[], $6::text[], $7::float8[], $8::float8[])
        AS given (id, kind, data, provenance, sources, sites, first, last)
"""
# The fields do not travel: most records are a thing by themselves.
PUT_ALONE = """
    INSERT INTO {s}.things (id, kind, data, provenance, sources, sites, first_seen_at, seen_at)
    SELECT m.thing, kind, r.data, '{}', 1, ARRAY[site], r.first_seen_at, r.seen_at
    FROM {s}.merge_sources AS m JOIN {s}.records AS r USING (site, kind, key) WHERE m.id = ANY ($1::bigint[])
"""
PUT_DECISIONS = """
    INSERT INTO {s}.merge_verdicts (a, b, same) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::boolean[])
    ON CONFLICT (a, b) DO UPDATE SET same = excluded.same, decided_at = now()
"""
TOUCH = "UPDATE {s}.merge_sources SET rule = 0 WHERE id = ANY ($1::bigint[])"
THING = "SELECT id, kind, data::text, provenance::text FROM {s}.things WHERE id = $1"
VIEWS = """
    SELECT m.id, m.site, m.key, coalesce(r.url, ''), m.thing, coalesce(r.data::text, '')
    FROM {s}.merge_sources AS m LEFT JOIN {s}.records AS r USING (site, kind, key)
"""
# Links that nothing has decided. A thing that has a source of the other's site is decided.
OPEN = """
    FROM {s}.merge_links AS l JOIN {s}.merge_sources AS one ON one.id = l.a
        JOIN {s}.merge_sources AS other ON other.id = l.b
    WHERE one.thing <> other.thing
        AND NOT EXISTS (SELECT 1 FROM {s}.merge_verdicts AS v WHERE v.a = l.a AND v.b = l.b)
        AND NOT EXISTS (SELECT 1 FROM {s}.merge_sources AS s WHERE s.thing = one.thing AND s.site = other.site)
        AND NOT EXISTS (SELECT 1 FROM {s}.merge_sources AS s WHERE s.thing = other.thing AND s.site = one.site)
"""
REVIEW = f"SELECT l.a, l.b, l.score {OPEN} ORDER BY l.score DESC, l.a, l.b LIMIT $1"
TOTALS = f"""
    SELECT (SELECT count(*) FROM {{s}}.merge_sources), count(*), count(*) FILTER (WHERE sources > 1),
        (SELECT count(*) {OPEN}) FROM {{s}}.things
"""

"""The SQL of the sink. One array per column: one statement for a batch of any size."""

from trotline.adapters.postgres.row_columns import VISIT_TYPES


def upsert(schema: str, window: float = 0.0) -> str:
    """$1 to $7: the columns of the rows; $8: the job; $9: the freshness in seconds; $10: when the job started; $11: the
    writer; $12: the number of records.

    The newest version wins; of two with the same time, the last one. Unchanged data is not rewritten: `stored.data`
    keeps its TOAST value. The same statement counts: an inserted row has no xmax, a changed one has changed_at =
    seen_at. With a `window`, rows that were seen within it are left as they are, changed or not.
    """
    within = f"AND stored.seen_at < excluded.seen_at - make_interval(secs => {float(window)!r})" if window else ""
    return f"""
        WITH written AS (
        INSERT INTO {schema}.records AS stored
            (site, kind, key, data, url, host, seen_at, first_seen_at, changed_at, job)
        SELECT site, kind, key, data::jsonb, url, host, at, at, at, $8::text
        FROM (
            SELECT site, kind, key, data, url, host, to_timestamp(seen) AS at
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[])
                AS given (site, kind, key, data, url, host, seen)
        ) AS given
        ON CONFLICT (site, kind, key) DO UPDATE SET
            data = CASE WHEN stored.data = excluded.data THEN stored.data ELSE excluded.data END,
            changed_at = CASE WHEN stored.data = excluded.data THEN stored.changed_at ELSE excluded.seen_at END,
            changes = stored.changes + CASE WHEN stored.data = excluded.data THEN 0 ELSE 1 END,
            url = excluded.url, host = excluded.host, seen_at = excluded.seen_at, job = excluded.job
        WHERE excluded.seen_at >= stored.seen_at AND CASE
            WHEN stored.data <> excluded.data THEN true
            WHEN excluded.seen_at = stored.seen_at THEN false
            ELSE excluded.seen_at >= stored.seen_at + make_interval(secs => $9::float8) END {within}
        RETURNING xmax = 0 AS is_new, changed_at = seen_at AS is_changed
        )
        INSERT INTO {schema}.row_counts AS known (job, started_at, writer, new, changed, again)
        SELECT $8::text, $10::float8, $11::text, news, changes, $12::bigint - news - changes
        FROM (
            SELECT count(*) FILTER (WHERE is_new) AS news, count(*) FILTER (WHERE is_changed AND NOT is_new) AS changes
            FROM written
        ) AS counted
        ON CONFLICT (job, started_at, writer) DO UPDATE SET
            new = known.new + excluded.new, changed = known.changed + excluded.changed,
            again = known.again + excluded.again, counted_at = now()
    """


def counts(schema: str) -> str:
    """$1: the job, $2: when it started."""
    return f"""
        SELECT coalesce(sum(new), 0)::bigint, coalesce(sum(changed), 0)::bigint, coalesce(sum(again), 0)::bigint
        FROM {schema}.row_counts WHERE job = $1 AND started_at = $2
    """


def rows_by_kind(schema: str) -> str:
    return f"SELECT kind, count(*) FROM {schema}.records GROUP BY kind ORDER BY min(first_seen_at), kind"


def writing_jobs(schema: str) -> str:
    """Of the ledger it takes one step in the index per job."""
    return f"""
        WITH RECURSIVE known (job) AS (
            SELECT min(job) FROM {schema}.visits
            UNION ALL
            SELECT (SELECT min(job) FROM {schema}.visits WHERE job > known.job) FROM known WHERE job IS NOT NULL
        )
        SELECT job FROM known WHERE job IS NOT NULL UNION SELECT job FROM {schema}.row_counts
    """


def forget_counts(schema: str) -> str:
    """$1: the time before which they are deleted."""
    return f"DELETE FROM {schema}.row_counts WHERE counted_at < to_timestamp($1::float8)"


def log(schema: str) -> str:
    """$1, $2, ...: one array for each column of VISIT_TYPES, in its order. Existing lines are kept."""
    names = ", ".join(VISIT_TYPES)
    values = ", ".join(f"to_timestamp({n})" if kind == "moment" else n for n, kind in VISIT_TYPES.items())
    arrays = ", ".join(
        f"${number}::{'float8' if kind == 'moment' else kind}[]"
        for number, kind in enumerate(VISIT_TYPES.values(), start=1)
    )
    return f"""
        INSERT INTO {schema}.visits ({names})
        SELECT {values} FROM unnest({arrays}) AS given ({names})
        ON CONFLICT (job, token, leased_at) DO NOTHING
    """


def story(schema: str) -> str:
    """$1: fingerprints, $2: URL, $3: limit. The last ones, oldest first."""
    values = ", ".join(
        f"extract(epoch FROM {n})::float8 AS {n}" if kind == "moment" else n for n, kind in VISIT_TYPES.items()
    )
    # UNION, so that each part uses its index: OR would scan the table.
    return f"""
        SELECT * FROM (
            SELECT {values} FROM (
                SELECT * FROM {schema}.visits WHERE fingerprint = ANY ($1::bigint[])
                UNION
                SELECT * FROM {schema}.visits WHERE url = $2 AND $2 <> ''
            ) AS found ORDER BY leased_at DESC, token DESC LIMIT $3
        ) AS last ORDER BY leased_at, token
    """


def rows(schema: str) -> str:
    """$1: URLs, $2: limit."""
    return f"""
        SELECT site, kind, key, url, extract(epoch FROM seen_at)::float8 AS seen_at, data::text AS data
        FROM {schema}.records WHERE left(url, 200) COLLATE "C" = ANY (
            ARRAY (SELECT left(given, 200) FROM unnest($1::text[]) AS given)
        ) AND url = ANY ($1::text[]) ORDER BY first_seen_at, site, kind, key LIMIT $2
    """


def remember_fields(schema: str) -> str:
    """$1: kinds, $2: names, $3: limit per kind."""
    return f"""
        INSERT INTO {schema}.fields (kind, name)
        SELECT kind, name FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (kind, name, turn)
        WHERE (SELECT count(*) FROM {schema}.fields AS known WHERE known.kind = given.kind) < $3
        ORDER BY turn
        ON CONFLICT DO NOTHING
    """

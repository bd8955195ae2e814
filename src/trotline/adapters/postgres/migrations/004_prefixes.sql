-- Search by the start of a key or URL, in pages. In collations other than "C" texts that start alike do not stand
-- together. The indexes are made anew; the table is not rewritten.

DO $body$
BEGIN
    ALTER TABLE {schema}.records ALTER COLUMN site TYPE text COLLATE "C", ALTER COLUMN kind TYPE text COLLATE "C",
        ALTER COLUMN key TYPE text COLLATE "C";
    -- An index serves a join of both only in their common collation.
    ALTER TABLE {schema}.history ALTER COLUMN site TYPE text COLLATE "C", ALTER COLUMN kind TYPE text COLLATE "C",
        ALTER COLUMN key TYPE text COLLATE "C";
EXCEPTION WHEN feature_not_supported THEN
    -- A view of the database's owner uses these columns: one more index instead, which costs writes.
    CREATE INDEX records_by_key ON {schema}.records (site COLLATE "C", kind COLLATE "C", key COLLATE "C");
END
$body$;

-- The start of the URL instead of its hash: a btree holds no entry of more than 2,700 bytes. It costs writes no more.
DROP INDEX {schema}.records_url;
CREATE INDEX records_url ON {schema}.records ((left(url, 200)) COLLATE "C");

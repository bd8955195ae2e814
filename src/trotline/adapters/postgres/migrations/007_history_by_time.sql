-- The history in partitions by time, like the visits. What is there becomes one partition that ends tomorrow; rows of other
-- times wait in history_other until maintenance makes a partition for them.

ALTER TABLE {schema}.history RENAME TO history_until_now;
ALTER INDEX {schema}.history_of RENAME TO history_until_now_of;
ALTER INDEX {schema}.history_replaced_at RENAME TO history_until_now_replaced_at;

CREATE TABLE {schema}.history (LIKE {schema}.history_until_now) PARTITION BY RANGE (replaced_at);
CREATE INDEX history_of ON {schema}.history (site, kind, key, since);
CREATE INDEX history_replaced_at ON {schema}.history USING brin (replaced_at) WITH (autosummarize = on);
CREATE TABLE {schema}.history_other PARTITION OF {schema}.history DEFAULT;

DO $body$
DECLARE
    ends date;
BEGIN
    SELECT (greatest(max(replaced_at), now()) AT TIME ZONE 'UTC')::date + 1 INTO ends FROM {schema}.history_until_now
        HAVING count(*) > 0;
    IF ends IS NULL THEN
        DROP TABLE {schema}.history_until_now;
        RETURN;
    END IF;
    -- Rows from before 1970 would not be of this world; the name has the bounds.
    EXECUTE format('ALTER TABLE %s.history_until_now RENAME TO history_19700101_%s', '{schema}', to_char(ends, 'YYYYMMDD'));
    EXECUTE format('ALTER TABLE %s.history ATTACH PARTITION %s.history_19700101_%s FOR VALUES FROM (%L) TO (%L)',
        '{schema}', '{schema}', to_char(ends, 'YYYYMMDD'), '1970-01-01 00:00:00+00', ends || ' 00:00:00+00');
END
$body$;

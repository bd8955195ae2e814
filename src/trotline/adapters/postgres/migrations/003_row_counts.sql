-- How many records of a job were new, changed or seen again. One line per job and writer: writers never wait for each
-- other's line. `started_at` belongs to the name of a job: a frontier that was removed and made again counts from 1.

CREATE TABLE {schema}.row_counts (
    job text NOT NULL,
    started_at double precision NOT NULL,
    writer text NOT NULL,
    new bigint NOT NULL,
    changed bigint NOT NULL,
    again bigint NOT NULL,
    counted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job, started_at, writer)
) WITH (fillfactor = 50);

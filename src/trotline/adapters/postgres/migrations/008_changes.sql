-- How often the data of a record has changed. A re-parse changes it without another sighting, so the time that a merge has
-- noted of a record does not tell that it must be merged again.

ALTER TABLE {schema}.records ADD COLUMN changes integer NOT NULL DEFAULT 0;
ALTER TABLE {schema}.merge_sources ADD COLUMN changes integer NOT NULL DEFAULT 0;

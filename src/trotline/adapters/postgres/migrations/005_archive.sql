-- Where the raw response of a visit is in the archive, or why it is not there.
ALTER TABLE {schema}.visits ADD COLUMN IF NOT EXISTS archive text NOT NULL DEFAULT '';

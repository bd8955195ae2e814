"""Operations over several shards of a job."""

"""A job over several shards, as if they were one: used only when there are more than one."""

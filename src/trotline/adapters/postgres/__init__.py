"""Records, their history and visits in PostgreSQL: all knowledge of it is in this folder."""

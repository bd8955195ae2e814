"""SQLite: the frontier and the sink of one machine, in files that survive a crash."""

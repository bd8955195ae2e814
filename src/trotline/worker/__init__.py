"""The story of one page; slots, group commit, heartbeat, supervisor, shutdown."""

"""The worker: visits, slots, group commit, heartbeat, supervisor, shutdown."""

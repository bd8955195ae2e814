"""Seeds, schedules, counts and rescues; never fetches. Workers go on without it."""

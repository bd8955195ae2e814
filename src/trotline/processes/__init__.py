"""Child processes: start, configuration, limits, signals."""

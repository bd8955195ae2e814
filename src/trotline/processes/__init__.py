"""Child processes: how they start, what they are told, their limits, signals."""

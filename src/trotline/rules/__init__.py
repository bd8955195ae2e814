"""Pure decisions: no clock, no random source, no I/O; all of them are parameters."""

"""Pure decisions: no clock, no random source, no I/O. What they need is handed in."""

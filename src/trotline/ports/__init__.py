"""One Protocol per file, with its numbered promises. No default bodies: every backend must answer."""

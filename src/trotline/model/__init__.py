"""Frozen nouns; JSON-able; no I/O."""

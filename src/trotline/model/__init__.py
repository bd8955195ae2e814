"""Data classes: immutable, serializable, no I/O."""

"""Whole crawls on a virtual clock with seeded faults: `python -m tests.simulation --seeds 20000`."""

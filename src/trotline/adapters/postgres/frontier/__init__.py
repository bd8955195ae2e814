"""The frontier in PostgreSQL: decisions in Python (rules/), one transaction per call, a few statements per batch."""

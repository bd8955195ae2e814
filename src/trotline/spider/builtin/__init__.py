"""Spiders that are ready to run."""

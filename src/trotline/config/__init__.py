"""Typed settings, URLs, the table of backends, and loading of spiders."""

"""Typed settings and wiring: the only room that names concrete adapters."""

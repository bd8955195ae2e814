"""The schema version of a database sink, and the result of an upgrade."""

import msgspec


class SchemaUpgrade(msgspec.Struct, frozen=True):
    version: int
    applied: tuple[str, ...]
    """Applied migrations: "002 visits"."""
    partitions: tuple[str, ...]
    """Created ahead."""


class SchemaStatus(msgspec.Struct, frozen=True):
    place: str
    schema: str
    server: str
    version: int
    """0: there are no tables."""
    newest: int
    records: int = 0
    """An estimate from the server's statistics."""
    bytes: int = 0
    """Of all tables and indexes of the schema."""
    partitions: tuple[str, ...] = ()

"""The tables of a sink that is a database: how they stand, and what an upgrade did."""

import msgspec


class SchemaUpgrade(msgspec.Struct, frozen=True):
    version: int
    applied: tuple[str, ...]
    """Migrations that were missing: "002 visits"."""
    partitions: tuple[str, ...]
    """Made ahead."""


class SchemaStatus(msgspec.Struct, frozen=True):
    place: str
    schema: str
    server: str
    version: int
    """0: there are no tables."""
    newest: int
    records: int = 0
    """About; as the server's statistics have it."""
    bytes: int = 0
    """Of all tables and indexes of the schema."""
    partitions: tuple[str, ...] = ()

"""The schema version of a database sink, and the result of an upgrade."""

import msgspec

from trotline.model.time import Moment

KEEP, DIVIDE = "keep", "divide"


class SchemaUpgrade(msgspec.Struct, frozen=True):
    version: int
    applied: tuple[str, ...]
    """Applied migrations: "002 visits"."""
    partitions: tuple[str, ...]
    """Created ahead."""


class TableSize(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    rows: int | None
    """An estimate. None: not known, as this user may not read the table."""
    bytes: int
    """With its indexes."""
    partition: bool


class PartitionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the next maintenance does with a partition."""

    table: str
    name: str
    rows: int | None
    """See `TableSize`."""
    bytes: int
    does: str
    """"keep", "drop", "detach", "parquet", or "divide": its rows get partitions of their own, which may end then."""
    expires_at: Moment | None
    """None: never."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    place: str
    parquet: str
    """The folder for Parquet files; empty: none are written."""
    partitions: tuple[PartitionPlan, ...]


class Maintenance(msgspec.Struct, frozen=True, kw_only=True):
    """What a maintenance did, by names of partitions."""

    made: tuple[str, ...]
    retired: tuple[str, ...]
    busy: tuple[str, ...]


class SchemaStatus(msgspec.Struct, frozen=True):
    place: str
    schema: str
    server: str
    version: int
    """0: there are no tables."""
    newest: int
    records: int | None = 0
    """An estimate. None: not known."""
    bytes: int = 0
    """Of all tables and indexes of the schema."""
    partitions: tuple[str, ...] = ()
    tables: tuple[TableSize, ...] = ()

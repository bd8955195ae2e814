"""The tables of a sink that is a database: how they stand, and bringing them up to date."""

from trotline.config import backends
from trotline.model.schema import SchemaStatus, SchemaUpgrade


async def upgrade(sink: str) -> SchemaUpgrade:
    return await backends.schema_admin(sink).upgrade(sink)


async def status(sink: str) -> SchemaStatus:
    return await backends.schema_admin(sink).status(sink)

"""The tables of a sink that is a database: how they stand, and bringing them up to date."""

import time

from trotline.config import backends
from trotline.model.schema import Maintenance, Retention, SchemaStatus, SchemaUpgrade


async def upgrade(sink: str) -> SchemaUpgrade:
    return await backends.schema_admin(sink).upgrade(sink)


async def status(sink: str) -> SchemaStatus:
    return await backends.schema_admin(sink).status(sink)


async def retention(sink: str) -> Retention:
    return await backends.schema_admin(sink).retention(sink, time.time())


async def maintain(sink: str) -> Maintenance:
    return await backends.schema_admin(sink).maintain(sink, time.time())

"""The tables of a sink that is a database: how they stand, and bringing them up to date."""

import time

from trotline.config import backends
from trotline.errors import SettingsError
from trotline.model.schema import Maintenance, Retention, SchemaStatus, SchemaUpgrade


async def upgrade(sink: str) -> SchemaUpgrade:
    return await backends.schema_admin(sink).upgrade(sink)


async def status(sink: str) -> SchemaStatus:
    return await backends.schema_admin(sink).status(sink)


async def retention(sink: str) -> Retention:
    return await backends.schema_admin(sink).retention(sink, time.time())


async def maintain(sink: str) -> Maintenance:
    """SettingsError if there are no tables: that is a mistake in the URL, and a schedule must not hide it."""
    admin = backends.schema_admin(sink)
    found = await admin.status(sink)
    if not found.version:
        raise SettingsError(
            f"there are no tables in the schema {found.schema!r} of {found.place}: nothing is maintained",
            hint="Correct schema= in the URL; or create the tables: trotline db upgrade --sink URL",
        )
    return await admin.maintain(sink, time.time())

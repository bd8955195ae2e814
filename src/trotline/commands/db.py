"""The tables of a PostgreSQL sink: how they stand, and bringing them up to date."""

from typing import TYPE_CHECKING, cast

from trotline.config.urls import POSTGRES, scheme_of, shown
from trotline.config.wiring import open_sink
from trotline.errors import SettingsError

if TYPE_CHECKING:
    from trotline.adapters.postgres.admin import Status as Status
    from trotline.adapters.postgres.admin import Upgraded as Upgraded
    from trotline.adapters.postgres.sink import PostgresSink


async def upgrade(sink: str) -> "Upgraded":
    opened = _open(sink)
    try:
        return await opened.upgrade()
    finally:
        await opened.close()


async def status(sink: str) -> "Status":
    opened = _open(sink)
    try:
        return await opened.status()
    finally:
        await opened.close()


def _open(sink: str) -> "PostgresSink":
    if not sink or scheme_of(sink) not in POSTGRES:
        raise SettingsError(
            f"{shown(sink)} is no PostgreSQL database" if sink else "no PostgreSQL database is named",
            hint="Name it: --sink postgresql://USER@HOST/DATABASE, or TROTLINE_SINK. Files need no upgrade.",
        )
    return cast("PostgresSink", open_sink(sink))

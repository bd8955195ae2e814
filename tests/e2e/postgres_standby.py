"""What an administrator does when the standby of a PostgreSQL takes over."""

import asyncpg

from trotline.testing.postgres_server import PostgresServer


async def administrate(server: PostgresServer, *statements: str) -> None:
    connection = await asyncpg.connect(server.url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def promote(standby: PostgresServer) -> None:
    """It copied the settings of its primary, and has no standby to wait for."""
    await administrate(
        standby, "SELECT pg_promote()", "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"
    )

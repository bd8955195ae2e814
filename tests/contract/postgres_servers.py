"""Real PostgreSQL servers for the tests of its sink: Debian's, the wheel's, and Debian's behind pgbouncer.

Each is started when the first test asks for it. Every test has a schema of its own.
"""

import itertools
import os
from contextlib import ExitStack

import asyncpg
import pytest

from trotline.adapters.postgres.sink_url import parse
from trotline.testing.postgres_server import DEBIAN, WHEEL, pgbouncer, postgres

PLACES = (DEBIAN, WHEEL, "pgbouncer")
_numbers = itertools.count(1)


class Servers:
    def __init__(self):
        self._stack = ExitStack()
        self._urls = {}
        self._servers = {}

    def server(self, build):
        if build not in self._servers:
            # Nothing here cuts the power: a server without fsync forgets no more than one with it.
            self._servers[build] = self._stack.enter_context(postgres(build, {"fsync": "off"}))
        return self._servers[build]

    def url(self, place):
        if place not in self._urls:
            self._urls[place] = (
                self._stack.enter_context(pgbouncer(self.server(DEBIAN)))
                if place == "pgbouncer"
                else self.server(place).url
            )
        return self._urls[place]

    def close(self):
        self._stack.close()


@pytest.fixture(scope="session")
def postgres_servers():
    servers = Servers()
    yield servers
    servers.close()


def fresh(url, **options):
    """The URL with a schema that nobody has used."""
    options.setdefault("schema", f"t{os.getpid()}_{next(_numbers)}")
    return url + "?" + "&".join(f"{name}={value}" for name, value in options.items())


@pytest.fixture(params=PLACES)
def everywhere(request, postgres_servers):
    """A fresh place at every server in turn."""
    return fresh(postgres_servers.url(request.param))


@pytest.fixture
def anywhere(postgres_servers):
    """A fresh place, for what does not depend on the server."""
    return fresh(postgres_servers.url(DEBIAN))


async def ask(url, question, *args):
    """The answer to a question in SQL, {s} being the place's schema."""
    address = parse(url)
    connection = await asyncpg.connect(address.dsn, password=address.password.reveal(), statement_cache_size=0)
    try:
        async with connection.transaction():
            if args or question.lstrip()[:6].upper() in ("SELECT", "UPDATE", "INSERT"):
                return [tuple(row) for row in await connection.fetch(question.replace("{s}", address.quoted), *args)]
            return await connection.execute(question.replace("{s}", address.quoted))
    finally:
        await connection.close()

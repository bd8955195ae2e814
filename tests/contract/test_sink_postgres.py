"""The PostgreSQL sink keeps the promises of the port: on the oldest and the newest server, and through pgbouncer."""

import json

import pytest
from tests.contract.postgres_servers import ask

from trotline.adapters.postgres.sink import PostgresSink
from trotline.testing.sink_contract import SinkContract


class TestPostgresSink(SinkContract):
    @pytest.fixture
    def sink(self, everywhere):
        sink = PostgresSink(everywhere)
        sink.url = everywhere
        return sink

    def second(self, sink):
        second = PostgresSink(sink.url)
        second.url = sink.url
        return second

    async def rows(self, sink):
        await sink.open()
        found = await ask(sink.url, "SELECT site, kind, key, data FROM {s}.records")
        assert len(found) == len({row[:3] for row in found})
        return {row[:3]: json.loads(row[3]) for row in found}

"""The merge stores keep the promises of their port."""

import sqlite3

import pytest
from tests.contract.postgres_servers import ask

from trotline.adapters.postgres.merge_store import PostgresMergeStore
from trotline.adapters.postgres.sink import PostgresSink
from trotline.adapters.sqlite.merge_store import SqliteMergeStore
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.testing.merge_contract import MergePlace, MergeStoreContract


class TestSqliteMergeStore(MergeStoreContract):
    @pytest.fixture
    def place(self, tmp_path):
        path = tmp_path / "rows.db"

        async def forget(*identity):
            connection = sqlite3.connect(path)
            connection.execute("DELETE FROM records WHERE site = ? AND kind = ? AND key = ?", identity)
            connection.commit()
            connection.close()

        return MergePlace(SqliteSink(path), SqliteMergeStore(path), forget)


class TestPostgresMergeStore(MergeStoreContract):
    @pytest.fixture
    def place(self, anywhere):
        async def forget(*identity):
            await ask(anywhere, "DELETE FROM {s}.records WHERE site = $1 AND kind = $2 AND key = $3", *identity)

        return MergePlace(PostgresSink(anywhere), PostgresMergeStore(anywhere), forget)

"""Expired partitions as Parquet files on a real S3 server: nothing is dropped that is not stored."""

import io
from urllib.parse import quote

import asyncpg
import obstore
import pyarrow.parquet as pq
import pytest
from tests.contract.postgres_servers import ask, fresh
from tests.contract.s3_servers import own_prefix, s3
from tests.contract.test_postgres_retention import NOW, YEAR, a_year

from trotline.adapters.postgres import retention
from trotline.adapters.s3.object_store import S3Objects
from trotline.adapters.s3.s3_url import address_of
from trotline.config import backends
from trotline.errors import SettingsError, SinkError
from trotline.testing.postgres_server import DEBIAN
from trotline.testing.seaweedfs_server import KEY, SECRET, seaweedfs

ALL = [(YEAR + 1,)]
COUNT = "SELECT count(*) FROM {s}.visits"


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


def sink_url(postgres_servers, place):
    assert backends.open_objects(place)
    return fresh(postgres_servers.url(DEBIAN), visits="month", keep="90d", retire="parquet", parquet=place)


async def stored(place):
    """Token of each visit in the files, by file."""
    objects = S3Objects(address_of(place))
    names = [one["path"] for chunk in obstore.list(objects._store, objects._prefix) for one in chunk if one["size"]]
    found = {}
    for name in names:
        data = bytes(await (await obstore.get_async(objects._store, name)).bytes_async())
        found[name] = [row["token"] for row in pq.read_table(io.BytesIO(data)).to_pylist()]
    return found


async def test_expired_partitions_are_on_s3_and_then_dropped(postgres_servers):
    place = s3().url(own_prefix())
    url = sink_url(postgres_servers, place)
    sink = await a_year(url)
    did = await sink.renew_partitions(NOW)
    files = await stored(place)
    assert len(files) == len([name for name in did.retired if name.startswith("visits")])
    assert sorted(token for tokens in files.values() for token in tokens) == list(range(92, YEAR + 1))
    assert [(92,)] == await ask(url, COUNT)
    assert (await sink.retention(NOW)).parquet == place
    await sink.close()


async def test_a_crash_between_upload_and_drop_leaves_one_file_and_every_row(postgres_servers, monkeypatch):
    place = s3().url(own_prefix())
    url = sink_url(postgres_servers, place)
    sink = await a_year(url)

    async def crash(*_):
        raise asyncpg.LockNotAvailableError("the process died here")

    with monkeypatch.context() as patched:
        patched.setattr(retention, "_end", crash)
        assert (await sink.renew_partitions(NOW)).retired == ()
    assert await ask(url, COUNT) == ALL
    [first] = await stored(place)

    await sink.renew_partitions(NOW)
    files = await stored(place)
    assert first in files
    assert sorted(token for tokens in files.values() for token in tokens) == list(range(92, YEAR + 1))
    await sink.close()


@pytest.mark.parametrize("fault", ["credentials", "bucket", "unreachable"])
async def test_a_place_that_does_not_take_the_file_loses_nothing(postgres_servers, monkeypatch, fault):
    place = s3().url(own_prefix())
    if fault == "credentials":
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret-of-the-lab")
    elif fault == "bucket":
        place = f"s3://no-such-bucket/x?endpoint={s3().endpoint}"
    else:
        place = "s3://pages/x?endpoint=http://127.0.0.1:9"
    url = sink_url(postgres_servers, place)
    sink = await a_year(url)
    with pytest.raises(SinkError, match="cannot be stored") as refused:
        await sink.renew_partitions(NOW)
    assert "Nothing was deleted" in refused.value.hint
    assert "not-the-secret-of-the-lab" not in str(refused.value)
    assert await ask(url, COUNT) == ALL
    await sink.close()


@pytest.mark.slow("a server with a small disk")
async def test_a_full_bucket_loses_nothing(postgres_servers, monkeypatch):
    with seaweedfs(volumes=1) as server:
        objects = S3Objects(address_of(server.url("filler")))
        with pytest.raises(Exception, match="InternalError"):
            for number in range(60):
                await objects.put(f"{number}", bytes([number]) * 400_000)
        url = sink_url(postgres_servers, server.url("old"))
        sink = await a_year(url)
        with pytest.raises(SinkError, match="cannot be stored"):
            await sink.renew_partitions(NOW)
        assert await ask(url, COUNT) == ALL
        await sink.close()


@pytest.mark.parametrize("place", ["s3://key:word@pages/x", "ftp://h/x", "s3:pages", "file:old"])
async def test_a_place_that_cannot_be_one_is_refused_at_once(postgres_servers, place):
    from trotline.adapters.postgres.sink import PostgresSink

    url = fresh(postgres_servers.url(DEBIAN), visits="month", keep="90d", retire="parquet")
    with pytest.raises(SettingsError) as refused:
        PostgresSink(f"{url}&parquet={quote(place)}")
    assert "key:word" not in str(refused.value)

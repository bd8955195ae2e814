"""The archive on a real S3 server, under contract, and with its faults."""

import asyncio
import hashlib
import hmac
import random
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from tests.contract.joined_objects import objects_are_joined
from tests.contract.s3_servers import own_prefix, s3

from trotline.adapters.s3.object_store import S3Objects
from trotline.adapters.s3.s3_url import address_of
from trotline.config import backends
from trotline.errors import ArchiveError, ArchiveUnreachable, SettingsError
from trotline.model.archive import ArchiveQuery, ArchiveTidied
from trotline.model.time import LAST_MOMENT
from trotline.testing.archive_contract import ArchiveContract, capture, found, read
from trotline.testing.seaweedfs_server import BUCKET, KEY, SECRET, seaweedfs


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


class TestS3Archive(ArchiveContract):
    @pytest.fixture
    def place(self):
        url = s3().url(own_prefix())
        return lambda: backends.open_archive(url, "contract")


async def test_wrong_credentials_are_refused_before_any_page_and_never_printed(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret-of-the-lab")
    with pytest.raises(ArchiveUnreachable) as refused:
        await backends.open_archive(s3().url(own_prefix())).open()
    assert "refuses us" in refused.value.what
    assert "not-the-secret-of-the-lab" not in str(refused.value)
    assert "AWS_SECRET_ACCESS_KEY" in refused.value.hint


async def test_credentials_come_by_reference(monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("ARCHIVE_KEY", f"{KEY}:{SECRET}")
    archive = backends.open_archive(s3().url(own_prefix()) + "&credentials=env:ARCHIVE_KEY")
    await archive.open()
    await archive.write([capture(1)])
    assert len(await found(archive)) == 1
    monkeypatch.setenv("ARCHIVE_KEY", "nonsense")
    with pytest.raises(SettingsError, match="KEY:SECRET"):
        backends.open_archive(s3().url(own_prefix()) + "&credentials=env:ARCHIVE_KEY")


async def test_a_bucket_that_is_not_there_is_named():
    with pytest.raises(ArchiveUnreachable, match="no such bucket"):
        await backends.open_archive(f"s3://no-such-bucket/x?endpoint={s3().endpoint}").open()


async def test_an_outage_is_one_plain_sentence():
    archive = backends.open_archive("s3://pages/x?endpoint=http://127.0.0.1:9", "contract")
    with pytest.raises(ArchiveUnreachable) as refused:
        await archive.write([capture(1)])
    assert refused.value.what == "s3://pages/x at http://127.0.0.1:9 is unreachable: connection refused"


async def test_objects_that_a_rule_of_the_bucket_removed_are_counted(caplog):
    url = s3().url(own_prefix())
    archive = backends.open_archive(url, "contract")
    for number in range(3):
        await archive.write([capture(2 * number), capture(2 * number + 1)])
    store = archive._store
    [first, *_] = await store.listed("open")
    await store.delete([first.name])
    await archive.close()
    assert archive.lost == 2
    assert "archive.lost 2 captures" in caplog.text
    assert len(await found(backends.open_archive(url))) == 4


async def test_objects_are_joined_and_a_missing_one_is_named_before_anything_is_put():
    await objects_are_joined(backends.open_archive(s3().url(own_prefix()))._store)


async def test_of_a_cut_object_the_rest_is_read():
    url = s3().url(own_prefix())
    archive = backends.open_archive(url, "contract")
    await archive.write([capture(number) for number in range(6)])
    await archive.close()
    store = archive._store
    [file] = [one.name for one in await store.listed("") if one.name.endswith(".warc.gz")]
    data = await store.get(file)
    await store.put(file, data[: len(data) // 2])
    skipped = []
    pages = [page async for page in archive.pages(ArchiveQuery(), 1, 2, skipped=skipped.append)]
    pages += [page async for page in archive.pages(ArchiveQuery(), 0, 2, skipped=skipped.append)]
    assert 0 < len(pages) < 6
    assert len(pages) + len(skipped) == 6


@pytest.mark.slow("a server that is killed and comes back")
async def test_a_killed_server_loses_nothing_that_write_has_returned():
    with seaweedfs() as server:
        archive = backends.open_archive(server.url("killed"), "contract")
        await archive.open()
        await archive.write([capture(1)])
        server.kill()
        with pytest.raises(ArchiveUnreachable, match="unreachable"):
            await archive.write([capture(2)])
        server.start()
        await archive.write([capture(2)])
        assert [page.answer.body for page in await read(archive)] == [capture(1).body, capture(2).body]
        # Slow: while it stands still a write waits, and is done when it goes on.
        server.hold()
        writing = asyncio.create_task(archive.write([capture(3)]))
        done, _ = await asyncio.wait([writing], timeout=0.5)
        assert not done
        server.go_on()
        await writing
        await archive.close()
        assert len(await found(backends.open_archive(server.url("killed")))) == 3
        assert not (await archive.check()).damages
        assert f"s3://{BUCKET}" in server.url("killed")


@pytest.mark.slow("a server with a small disk")
async def test_a_full_server_is_an_outage_and_what_it_has_stays():
    with seaweedfs(volumes=2) as server:
        archive = backends.open_archive(server.url("full"), "contract")
        await archive.open()
        written = 0
        with pytest.raises(ArchiveUnreachable, match="InternalError"):
            for number in range(1, 60):
                await archive.write([capture(number, body=random.Random(number).randbytes(400_000))])
                written = number
        assert 0 < written < 50
        assert len(await read(archive)) == written
        assert not (await archive.check()).damages


@pytest.mark.parametrize("folder", ["", "open/", "warc/", "open/somebody/", "warc/20260101/"])
async def test_a_folder_that_a_console_made_is_no_object_of_the_archive(folder):
    url = s3().url(own_prefix())
    archive = backends.open_archive(url, "contract")
    await archive.open()
    await archive.write([capture(1)])
    put_marker(url.partition("?")[0] + f"/{folder}")
    assert await archive.tidy(LAST_MOMENT) == ArchiveTidied()
    assert len(await read(archive)) == 1
    assert (await archive.check()).damages == ()
    await archive.close()


@pytest.mark.parametrize(("written", "named"), [("b%0A.warc.gz", r"b\n.warc.gz"), ("%7F.gz", r"\x7f.gz")])
async def test_an_object_whose_name_cannot_be_read_is_named_and_pages_are_archived_beside_it(written, named):
    prefix = own_prefix()
    archive = backends.open_archive(s3().url(prefix), "contract")
    put_marker(f"s3://{BUCKET}/{prefix}/warc/20261118/{written}")
    await archive.open()
    await archive.write([capture(1)])
    with pytest.raises(ArchiveError) as refused:
        await found(archive)
    assert not isinstance(refused.value, ArchiveUnreachable), "waiting does not help"
    assert f"{prefix}/warc/20261118/{named}'" in refused.value.what
    assert "Another program made it" in refused.value.hint
    await archive.close()
    assert [one.name for one in await S3Objects(address_of(s3().url(prefix))).listed("open")] == []


def put_marker(url):
    """An empty object whose name ends in a slash, which obstore does not write."""
    bucket, _, name = url.removeprefix("s3://").partition("/")
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    place, empty = urlsplit(s3().endpoint), hashlib.sha256(b"").hexdigest()
    headers = {"host": place.netloc, "x-amz-content-sha256": empty, "x-amz-date": now}
    names = ";".join(headers)
    asked = "\n".join(
        ("PUT", f"/{bucket}/{name}", "", *(f"{key}:{value}" for key, value in headers.items()), "", names, empty)
    )
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), "sha256").digest()
    signed = f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    sent = {**headers, "authorization": signed, "content-length": "0"}
    with closing(HTTPConnection(place.netloc)) as connection:
        connection.request("PUT", f"/{bucket}/{name}", headers=sent)
        assert connection.getresponse().status == 200

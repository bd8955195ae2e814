"""What a request may carry: bad input gets a clear error, and nothing gets through by its size or its form."""

import asyncio
import gzip
import io
import json

import pytest
from yarl import URL

from tests.unit.web.conftest import OPERATE, Client, Folder
from trotline.web import connections, validation
from trotline.web import server as server_module
from trotline.web.api import tasks
from trotline.web.route_table import LARGEST_BODY, NDJSON
from trotline.web.routes import ROUTES

JOB = "/api/v1/jobs/shop-1"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/api/v1/jobs?jobs=3", "unknown parameter 'jobs' in the query"),
        ("/api/v1/jobs?limit=3&limit=4", "'limit' is there more than once"),
        ("/api/v1/jobs?limit=0", "limit"),
        ("/api/v1/jobs?limit=-1", "limit"),
        ("/api/v1/jobs?limit=1e9", "limit"),
        ("/api/v1/jobs?limit=99999999999999999999999999", "limit"),
        ("/api/v1/jobs?limit=" + "9" * 7000, "limit"),
        ("/api/v1/jobs?unfinished=maybe", "unfinished"),
        ("/api/v1/jobs?spider=a%00b", "without NUL"),
        ("/api/v1/jobs?spider=" + "x" * 7000, "spider"),
        (f"{JOB}/series?resolution=1s", "resolution"),
        (f"{JOB}/lanes?sort=drop%20table", "sort"),
        (f"{JOB}/trace", "url"),
        (f"{JOB}/trace?url=nope", "not a web address"),
        (f"{JOB}/graveyard?limit=100000", "limit"),
        ("/api/v1/jobs/" + "x" * 400, "path"),
        ("/api/v1/jobs/a%00b", "without NUL"),
    ],
)
async def test_parameters_are_checked_and_the_error_names_them(server: Client, path: str, said: str) -> None:
    answer = await server.get(path)
    assert 400 == answer.status, answer.body
    assert said in answer.what
    assert len(answer.body) < 3000


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/jobs/%ff%fe",
        "/api/v1/jobs/%ed%a0%80",
        "/api/v1/jobs?spider=%ed%a0%80",
        "/api/v1/jobs/../../etc/passwd",
        "/api/v1/jobs/%2e%2e%2f%2e%2e%2fetc",
        "/api/v1/jobs/shop-1'%20OR%201=1",
        f"{JOB}/lanes?prefix=%25",
        f"{JOB}/lanes?prefix=*",
        f"{JOB}/graveyard?after=nonsense",
        f"{JOB}/graveyard?why=%25",
        f"{JOB}/trace?url=https://x/%ff%00",
        f"{JOB}/trace?url=https://[::1/",
        f"{JOB}/trace?url=" + "https://a/" + "%2e" * 1000,
        f"{JOB}/lanes/pace?lane=%0a",
        f"{JOB}/proxies?pool=*",
        f"{JOB}/proxies?pool=x&lane=y",
        f"{JOB}/records/download?kind=%27;drop",
    ],
)
async def test_odd_text_is_never_an_unexpected_error(server: Client, path: str) -> None:
    async with server.session.get(URL(server.url + path, encoded=True), allow_redirects=False) as response:
        await response.read()
        assert response.status in (200, 400, 404), await response.text()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"lane": 3}', 400),
        (b'{"lanes": "x"}', 400),
        (b'{"lane": "' + b"x" * 301 + b'"}', 400),
        (b'{"lane": "a\\u0000b"}', 400),
        (b'{"lane": "\\ud800"}', 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b'{"lane": ' * 10_000, 400),
        (io.BytesIO(b'{"lane": "x"}' + b" " * LARGEST_BODY), 413),
        (b"", 200),
        (b"{}", 200),
        (b'{"lane": null}', 200),
    ],
)
async def test_bodies_are_checked(guarded: Client, body: bytes | io.BytesIO, status: int) -> None:
    sent = {"Content-Type": "application/json"}
    answer = await guarded.call("POST", f"{JOB}/pause", data=body, headers=sent, token=OPERATE)
    assert status == answer.status, answer.body[:300]
    assert len(answer.body) < 3000


async def test_a_body_without_a_length_is_limited_too(guarded: Client) -> None:
    async def endless():
        while True:
            yield b" " * 65536

    sent = {"Content-Type": "application/json"}
    try:
        answer = await guarded.call("POST", f"{JOB}/pause", data=endless(), headers=sent, token=OPERATE)
        assert 413 == answer.status
    except OSError:
        pass  # It was refused while the client was still sending.


async def test_a_compressed_body_is_not_unpacked(guarded: Client) -> None:
    """A few kilobytes can be gigabytes."""
    bomb = gzip.compress(b" " * (50 * LARGEST_BODY))
    for path, media in ((f"{JOB}/pause", "application/json"), (f"{JOB}/tasks", NDJSON)):
        sent = {"Content-Type": media, "Content-Encoding": "gzip"}
        answer = await guarded.call("POST", path, data=bomb, headers=sent, token=OPERATE)
        assert 415 == answer.status, answer.body


@pytest.mark.parametrize("media", ["text/plain", "application/xml", "multipart/form-data; boundary=x"])
async def test_another_media_type_is_refused(guarded: Client, media: str) -> None:
    sent = {"Content-Type": media}
    assert 415 == (await guarded.call("POST", f"{JOB}/pause", data=b"{}", headers=sent, token=OPERATE)).status


async def test_a_route_without_a_body_takes_none(guarded: Client) -> None:
    assert 400 == (await guarded.call("GET", "/api/v1/health", data=b"x")).status
    assert 400 == (await guarded.call("DELETE", JOB, data=b"{}", token=OPERATE)).status


class TestSlowClients:
    async def _connect(self, client: Client) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))

    async def test_headers_that_do_not_end_end_the_connection(
        self, serving, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server_module, "HEADERS_WITHIN", 0.5)
        client = await serving(folder.settings)
        for begun in (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"):
            reader, writer = await self._connect(client)
            writer.write(begun)
            dripping = asyncio.create_task(self._drip(writer if begun else None))
            assert b"" == await asyncio.wait_for(reader.read(), 5)
            dripping.cancel()
            await asyncio.gather(dripping, return_exceptions=True)
            writer.close()
        assert 200 == (await client.get("/api/v1/health")).status

    async def _drip(self, writer: asyncio.StreamWriter | None) -> None:
        while True:
            if writer is not None:
                writer.write(b"X-A: b\r\n")
            await asyncio.sleep(0.05)

    async def test_a_body_that_does_not_end_is_not_waited_for(
        self, server: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(validation, "BODY_WITHIN", 0.3)
        reader, writer = await self._connect(server)
        head = b"POST /api/v1/jobs/shop-1/pause HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Content-Length: 100\r\n\r\n{")
        said = await asyncio.wait_for(reader.read(), 5)
        assert said.startswith(b"HTTP/1.1 408")
        writer.close()

    async def test_connections_are_limited(self, serving, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
        client = await serving(folder.settings)
        open_ = [await self._connect(client) for _ in range(20)]
        ended = [reader for reader, _ in open_ if await _ends(reader)]
        assert 15 == len(ended)
        assert 200 == (await client.get("/api/v1/health")).status, "silent connections do not block others"
        for _, writer in open_:
            writer.close()

    async def test_an_address_with_too_many_connections_ends_its_own(
        self, serving, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connections, "MOST_OF_AN_ADDRESS", 3)
        client = await serving(folder.settings)
        port = int(client.url.rpartition(":")[2])
        other = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        open_ = [await self._connect(client) for _ in range(8)]
        assert [True] * 5 + [False] * 3 == [await _ends(reader) for reader, _ in open_], "the oldest end"
        assert not await _ends(other[0])
        for _, writer in [*open_, other]:
            writer.close()

    async def test_a_new_connection_has_less_time_for_its_first_request(
        self, serving, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connections, "FIRST_WITHIN", 0.3)
        client = await serving(folder.settings)
        reader, writer = await self._connect(client)
        assert b"" == await asyncio.wait_for(reader.read(), 5)
        writer.close()
        reader, writer = await self._connect(client)
        for _ in range(2):
            writer.write(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(0.6)
        writer.close()


async def _ends(reader: asyncio.StreamReader) -> bool:
    try:
        return b"" == await asyncio.wait_for(reader.read(1), 0.3)
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


async def test_an_unexpected_error_says_its_id_and_nothing_else(
    server: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("the secret is in /etc/passwd")

    monkeypatch.setattr(server.site.index, "places", fail)
    answer = await server.get("/api/v1/jobs")
    assert 500 == answer.status
    number = answer.json["error"]["id"]
    assert answer.what == f"unexpected error {number}"
    assert b"passwd" not in answer.body and b"RuntimeError" not in answer.body
    assert number in caplog.text and "passwd" in caplog.text


async def test_bulk_lines_are_limited_in_length_and_answered_with_their_numbers(
    serving, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.path / "shop.py").write_text(
        "from trotline import Spider\n"
        "shop = Spider('shop', hosts=['shop.example'])\n"
        "@shop.page(seeds=['https://shop.example/'])\n"
        "def page(page): ...\n"
    )
    client = await serving(folder.settings, spiders=("shop.py",))
    good = b'{"url": "https://shop.example/new/%d"}\n'
    lines = [good % number for number in range(1200)]
    lines[3] = b"x" * (tasks.LONGEST_LINE + 1) + b"\n"
    lines[7] = b"https://evil.example/\n"
    lines[9] = b"\xff\n"
    sent = {"Content-Type": NDJSON}
    answer = await client.call("POST", f"{JOB}/tasks", data=b"".join(lines), headers=sent)
    *bad, totals = [json.loads(line) for line in answer.body.splitlines()]
    assert [4, 8, 10] == sorted(line["line"] for line in bad)
    assert {"job": "shop-1", "lines": 1200, "new": 1197, "duplicate": 0, "bad": 3, "stopped": ""} == totals

    monkeypatch.setattr(tasks, "MOST_BAD", 10)
    answer = await client.call("POST", f"{JOB}/tasks", data=b"nonsense\n" * 5000, headers=sent)
    assert "what follows was not read" in json.loads(answer.body.splitlines()[-1])["stopped"]

    monkeypatch.setattr(tasks, "SILENT", 0.3)

    async def stalls():
        yield good % 5000
        await asyncio.sleep(5)

    answer = await client.call("POST", f"{JOB}/tasks", data=stalls(), headers=sent)
    last = json.loads(answer.body.splitlines()[-1])
    assert "nothing came" in last["stopped"]


async def test_tasks_need_the_spiders_file(server: Client) -> None:
    answer = await server.call("POST", f"{JOB}/tasks", data=b"x", headers={"Content-Type": NDJSON})
    assert 409 == answer.status
    assert "trotline web shop.py" in answer.json["error"]["hint"]
    assert 409 == (await server.post("/api/v1/jobs", {"spider": "shop"})).status


def test_every_struct_of_a_body_refuses_unknown_fields() -> None:
    for route in ROUTES:
        if route.body is not None and route.path.startswith("/api/"):
            assert route.body.__struct_config__.forbid_unknown_fields, route.path

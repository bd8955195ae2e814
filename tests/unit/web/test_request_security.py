"""The Host header, the headers of all answers, and requests that other sites forge."""

import asyncio

import pytest

from tests.unit.web.conftest import EVIL, OPERATE, VIEW, Client, Folder, Serving
from trotline.model.secret import Secret
from trotline.web.request_security import CONTENT_SECURITY, HEADERS, Hosts, host_of
from trotline.web.route_table import SSE, Route
from trotline.web.routes import ROUTES
from trotline.web.static_files import FOREVER

EVERYWHERE = "0.0.0.0"  # noqa: S104 - never bound


async def raw(client: Client, text: bytes) -> bytes:
    """What a connection answers to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))
    try:
        writer.write(text)
        return await asyncio.wait_for(reader.read(100_000), 10)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("localhost:8321", "localhost"),
        ("LOCALHOST", "localhost"),
        ("[::1]:80", "::1"),
        ("crawl.example.", "crawl.example"),
        ("evil.example@localhost", ""),
        ("localhost/evil", ""),
        ("localhost?x", ""),
        ("localhost#x", ""),
        ("localhost:99999999", ""),
        ("localhost:x", ""),
        ("[::1", ""),
        ("", ""),
        (" ", " "),
    ],
)
def test_the_name_in_a_host_header(header: str, host: str) -> None:
    assert host == host_of(header)


@pytest.mark.parametrize(
    ("bound", "header", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1:8321", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "crawl.example", True),
        ("127.0.0.1", "evil.example", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "10.0.0.7", False),
        ("10.0.0.7", "10.0.0.7:80", True),
        (EVERYWHERE, "10.0.0.7", True),
        (EVERYWHERE, "10.0.0.8", False),
        (EVERYWHERE, "evil.example", False),
        ("::", "10.0.0.7", True),
        (EVERYWHERE, "", False),
        ("127.0.0.1", "", False),
    ],
)
def test_the_names_under_which_it_may_be_asked(bound: str, header: str, allowed: bool) -> None:
    local = "::ffff:10.0.0.7" if bound == "::" else "10.0.0.7"
    assert allowed is Hosts(bound, ["Crawl.Example"]).allows(header, local)


@pytest.mark.parametrize("path", ["/", "/login", "/api/v1/jobs", "/api/v1/health", "/static/x/y.css", "/nope"])
async def test_another_host_is_refused_before_all_else(guarded: Client, path: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "x\u00e9"):
        answer = await guarded.get(path, token=OPERATE, headers={"Host": host})
        assert 421 == answer.status


async def test_two_or_no_host_headers_are_refused(server: Client) -> None:
    for headers in (b"", b"Host: localhost\r\nHost: evil.example\r\n"):
        said = await raw(server, b"GET /api/v1/jobs HTTP/1.1\r\n" + headers + b"Connection: close\r\n\r\n")
        assert said.startswith((b"HTTP/1.1 421", b"HTTP/1.0 400")), said


async def test_every_answer_has_the_headers(guarded: Client, folder: Folder) -> None:
    asked = [
        ("GET", "/login", 200),
        ("GET", "/", None),
        ("GET", "/nope", 404),
        ("GET", "/api/v1/nope", 404),
        ("POST", "/api/v1/health", 405),
        ("GET", "/api/v1/jobs", 401),
        ("GET", "/api/v1/health", 200),
        ("POST", "/login", 403),
        ("OPTIONS", "/api/v1/jobs", 405),
    ]
    for method, path, status in asked:
        answer = await guarded.call(method, path)
        assert status in (None, answer.status), (path, answer.status)
        for name, value in HEADERS.items():
            assert value == answer.headers[name], (path, name)
        assert "trotline" == answer.headers["Server"]
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


async def test_streams_and_downloads_have_them_too(server: Client, folder: Folder) -> None:
    streams = [route for route in ROUTES if route.media == SSE]
    assert streams
    for route in streams:
        async with server.session.get(server.url + route.path.replace("{job}", folder.job)) as response:
            assert 200 == response.status
            assert CONTENT_SECURITY == response.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "text",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"z" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ids=["tls", "short", "version", "header", "long header", "long path", "length", "smuggling"],
)
async def test_what_is_not_http_gets_a_short_answer(
    server: Client, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    said = await raw(server, text)
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.0 4", b"HTTP/1.1 4")), said
    assert b"nosniff" in head and b"aiohttp" not in said.lower() and b"python" not in said.lower()
    assert len(body) < 500
    assert "Traceback" not in caplog.text


class TestForgery:
    """Requests that change something: who may send them."""

    PATH = "/api/v1/jobs/shop-1/pause"

    @pytest.mark.parametrize(
        ("headers", "allowed"),
        [
            ({"Sec-Fetch-Site": "same-origin"}, True),
            ({"Sec-Fetch-Site": "cross-site"}, False),
            ({"Sec-Fetch-Site": "same-site"}, False),
            ({"Sec-Fetch-Site": "none"}, False),
            ({"Sec-Fetch-Site": ""}, False),
            ({"Sec-Fetch-Site": "cross-site", "Origin": "OWN"}, False),
            ({"Origin": "OWN"}, True),
            ({"Origin": "https://evil.example"}, False),
            ({"Origin": "null"}, False),
            ({"Origin": ""}, False),
            ({"Origin": "http://127.0.0.1:1"}, False),
        ],
    )
    async def test_a_browser_says_where_it_comes_from(
        self, server: Client, guarded: Client, headers: dict[str, str], allowed: bool
    ) -> None:
        for client, token in ((server, ""), (guarded, OPERATE)):
            sent = {name: value.replace("OWN", client.url) for name, value in headers.items()}
            answer = await client.post(self.PATH, headers=sent, token=token)
            assert (200 if allowed else 403) == answer.status, answer.body

    async def test_a_program_on_this_machine_needs_no_token_if_it_sends_json(self, server: Client) -> None:
        assert 200 == (await server.post(self.PATH)).status
        for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = await server.call("POST", self.PATH, data=b"{}", headers={"Content-Type": media})
            assert 403 == answer.status, media

    async def test_a_cookie_alone_is_not_enough(self, guarded: Client) -> None:
        own = {"Origin": guarded.url}
        answer = await guarded.call("POST", "/login", data={"token": OPERATE}, headers=own)
        assert 303 == answer.status
        assert 403 == (await guarded.post(self.PATH)).status
        assert 403 == (await guarded.call("DELETE", "/api/v1/jobs/shop-1")).status
        assert 200 == (await guarded.post(self.PATH, headers=own)).status

    async def test_the_login_itself_cannot_be_forged(self, guarded: Client) -> None:
        sent = {"Origin": "https://evil.example"}
        assert 403 == (await guarded.call("POST", "/login", data={"token": VIEW}, headers=sent)).status

    @pytest.mark.parametrize("route", [one for one in ROUTES if one.method != "GET"], ids=lambda one: one.path)
    async def test_no_route_forgets_it(self, guarded: Client, folder: Folder, route: Route) -> None:
        path = route.path.replace("{job}", folder.job)
        sent = {"Sec-Fetch-Site": "cross-site", "Content-Type": route.body_media}
        assert 403 == (await guarded.call(route.method, path, data=b"{}", headers=sent, token=OPERATE)).status


async def test_hostile_texts_are_data_in_json_and_escaped_in_pages(server: Client, folder: Folder) -> None:
    answer = await server.get(f"/api/v1/jobs/{folder.job}/graveyard")
    assert "application/json" == answer.headers["Content-Type"].partition(";")[0]
    assert f"broken: {EVIL}" == answer.json["graves"][0]["why"]
    page = await server.get(f"/nope/{EVIL}")
    assert EVIL.encode() not in page.body
    wrong = await server.get(f"/login?next=/{EVIL}")
    assert EVIL.encode() not in wrong.body


async def test_static_files_are_kept_for_ever_under_the_hash_of_their_content(server: Client) -> None:
    url = server.site.pages.static.url("trotline.css")
    answer = await server.get(url)
    assert (200, FOREVER) == (answer.status, answer.headers["Cache-Control"])
    assert "text/css" in answer.headers["Content-Type"]
    for other in (url.replace("/static/", "/static/0"), "/static/x/..%2f..%2fserve.py", "/static/../serve.py"):
        assert 404 == (await server.get(other)).status


async def test_pages_have_no_inline_script_or_style(guarded: Client) -> None:
    page = (await guarded.get("/login")).body.decode().lower()
    assert "<style" not in page and "style=" not in page and "onclick" not in page
    assert "<script" not in page or "<script src" in page


async def test_a_secure_cookie_behind_tls(serving: Serving, folder: Folder) -> None:
    client = await serving(folder.settings, operate=Secret(OPERATE), host_names=("crawl.example",))
    sent = {"Host": "crawl.example", "Origin": "https://crawl.example"}
    answer = await client.call("POST", "/login", data={"token": OPERATE}, headers=sent)
    assert "Secure" in answer.headers["Set-Cookie"]

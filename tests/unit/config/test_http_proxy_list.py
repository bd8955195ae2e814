"""A list over HTTP, from a real server: read again every minute, the last good one stays."""

import http.server
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trotline.config import http_proxy_list
from trotline.config.proxy_pools import PoolBook, load
from trotline.errors import SettingsError


class Server(http.server.ThreadingHTTPServer):
    body = b"http://anna:s3cret-77@10.1.1.1:80\n"
    status = 200
    requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/list?token=s3cret-77-s3cret-77"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests += 1
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def place(tmp_path: Path, server: Server) -> str:
    (tmp_path / "proxies.toml").write_text(f'[pools.home]\nurl = "{server.url}"\n')
    (tmp_path / "proxies.toml").chmod(0o600)
    return str(tmp_path / "proxies.toml")


class Clock:
    now = 2_000_000_000.0

    def __call__(self) -> float:
        return self.now


def is_idle(book: PoolBook) -> bool:
    feed = book._pools["home"].feed
    return feed is not None and feed._thread is None


def after_a_read(book: PoolBook, server: Server, clock: Clock, reads: int = 1) -> list[int]:
    """Sizes of the pools that changed, once the server was asked `reads` times more."""
    wanted, changed = server.requests + reads, []
    until = time.monotonic() + 20
    while time.monotonic() < until:
        changed += [len(pool.members) for pool in book.reload()]
        if server.requests >= wanted and is_idle(book):
            return changed
        clock.now += 61 if server.requests < wanted else 0
        time.sleep(0.01)
    raise AssertionError("the list was not read again")


def test_the_list_is_read_at_the_start_and_again_when_it_is_due(place: str, server: Server) -> None:
    clock = Clock()
    book = load(place, clock=clock)
    assert len(book.pool("home").members) == 1
    server.body += b"http://10.1.1.2:80\n"
    assert book.reload() == []
    assert server.requests == 1
    assert after_a_read(book, server, clock) == [2]
    assert book.pool("home").version >= Clock.now
    assert after_a_read(book, server, clock) == []


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (503, b"http://10.1.1.9:80\n", "status 503"),
        (302, b"http://10.1.1.9:80\n", "status 302"),
        (200, b"", "empty"),
        (200, b"<html>s3cret-77</html>", "line 1"),
        (200, b"\xff\xfe", "UTF-8"),
        (200, b"http://10.1.1.9:80\n" * 100, "larger than 1,000 bytes"),
    ],
)
def test_the_last_good_list_stays_when_the_server_fails(
    status: int,
    body: bytes,
    says: str,
    place: str,
    server: Server,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_proxy_list, "LARGEST", 1_000)
    clock = Clock()
    book = load(place, clock=clock)
    before = book.pool("home")
    server.status, server.body = status, body
    with caplog.at_level(logging.WARNING):
        assert after_a_read(book, server, clock) == []
        assert after_a_read(book, server, clock) == []
    assert book.pool("home") is before
    [said] = [record.getMessage() for record in caplog.records if "proxies." in record.getMessage()]
    assert says in said
    assert "the last good list (1 proxies) stays in use" in said
    assert "s3cret" not in caplog.text


def test_a_list_that_cannot_be_read_at_the_start_is_refused_and_waited_for_by_workers(
    place: str, server: Server
) -> None:
    clock = Clock()
    server.status = 500
    with pytest.raises(SettingsError, match=r"pool 'home': its list at 127.0.0.1:\d+ cannot be used: status 500") as no:
        load(place, clock=clock)
    assert "s3cret" not in str(no.value)
    book = load(place, clock=clock, patient=True)
    assert (book.names, book.pools()) == (("home",), [])
    server.status = 200
    assert after_a_read(book, server, clock) == [1]


def test_a_private_server_is_not_asked_unless_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "proxies.toml"
    path.write_text('[pools.home]\nurl = "https://10.255.255.1/list"\n')
    with pytest.raises(SettingsError, match="not a public address"):
        load(str(path))
    path.write_text('[pools.home]\nurl = "https://169.254.169.254/latest"\n')
    with pytest.raises(SettingsError, match="not a public address"):
        load(str(path))


def test_keys_beside_the_url_may_change_without_a_new_read(place: str, server: Server) -> None:
    book = load(place, clock=Clock())
    Path(place).write_text(f'[pools.home]\nurl = "{server.url}"\nhold = 5\n')
    [changed] = book.reload()
    assert (changed.rules.hold, len(changed.members), server.requests) == (5, 1, 1)

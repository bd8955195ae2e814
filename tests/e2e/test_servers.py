"""Real servers start, serve, and are gone afterwards."""

import http.client
import os
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from trotline.testing import servers
from trotline.testing.servers import listen, need, nginx


def test_nginx_serves_a_folder_and_is_gone_afterwards(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<h1>hello</h1>")

    with nginx(tmp_path, access_log=True) as site:
        with urlopen(f"{site.url}/") as answer:  # noqa: S310
            assert answer.headers.get_content_type() == "text/html"
            assert answer.read() == b"<h1>hello</h1>"
        os.kill(site.pid, 0)  # Signal 0 only asks: is there such a process?

    assert not site.folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(site.pid, 0)
    with pytest.raises(OSError, match="refused"):
        urlopen(site.url)  # noqa: S310


def test_two_servers_at_once_have_their_own_ports(tmp_path: Path) -> None:
    with nginx(tmp_path) as one, nginx(tmp_path) as two:
        assert one.url != two.url


def test_latency_is_waited_once_for_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text("inside")

    with nginx(tmp_path, latency=0.2) as site:
        connection = http.client.HTTPConnection(site.url.removeprefix("http://"))
        for path, status in (("/sub/index.html", 200), ("/sub/", 200), ("/sub", 301), ("/missing", 404)):
            started = time.monotonic()
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
            assert time.monotonic() - started >= 0.2, path
        connection.close()


def test_a_server_that_cannot_start_shows_its_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_configuration", lambda *_: "no such directive;")

    with pytest.raises(RuntimeError, match='unknown directive "no"'), nginx(tmp_path):
        raise AssertionError("it started")


@pytest.mark.parametrize(("ci", "ending"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_a_missing_program_skips_on_a_laptop_and_fails_in_ci(
    ci: str, ending: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)

    with pytest.raises(ending, match="apt-get install some-package"):
        need("no-such-program", "some-package")


def test_a_port_is_held_from_the_moment_it_is_chosen() -> None:
    [held] = listen(["127.0.0.1"])
    with held, pytest.raises(OSError, match="in use"):
        listen(["127.0.0.1"], held.getsockname()[1])

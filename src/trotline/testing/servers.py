"""Real servers for tests: on free loopback ports, with folders of their own, stopped at the end."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

_BACKLOG = 1024
_ANSWER_WITHIN = 15.0
_STOP_WITHIN = 10.0
# Debian keeps servers where a user's PATH does not look.
_MORE_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/sbin")


def need(binary: str, package: str) -> Path:
    """Where a program is. If it is missing the test is skipped on a laptop and fails in CI."""
    folders = os.pathsep.join((os.environ.get("PATH", ""), *_MORE_FOLDERS))
    found = shutil.which(binary, path=folders)
    if found is None:
        missing(f"{binary} is not installed. Try: apt-get install {package}")
    return Path(found)


def missing(what: str) -> NoReturn:
    """Something that a test needs is not on this machine: skip on a laptop, fail in CI."""
    import pytest  # Only tests come here; the demo shop must start without pytest.

    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def listen(hosts: Sequence[str], port: int = 0) -> list[socket.socket]:
    """Listening sockets on one port of all the hosts; port 0 means a free one.

    The sockets are handed on open: a port that is looked up, closed and opened again may be taken by then.
    """
    opened: list[socket.socket] = []
    try:
        for host in hosts:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            opened.append(socket.socket(family, socket.SOCK_STREAM))
            opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened[-1].bind((host, port))
            opened[-1].listen(_BACKLOG)
            port = opened[0].getsockname()[1]
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened


@dataclass(frozen=True)
class Nginx:
    url: str
    """Without a slash at the end."""
    folder: Path
    """Its own temporary folder, with its configuration and logs."""
    pid: int

    def requests(self) -> list[str]:
        """The request line of every request so far ("GET /index.html HTTP/1.1"); needs `access_log=True`."""
        return (self.folder / "access.log").read_text().splitlines()


@contextmanager
def nginx(root: Path, *, latency: float | None = None, access_log: bool = False) -> Iterator[Nginx]:
    """Serve a folder with a real nginx. `latency`: seconds that every answer waits before it starts."""
    binary = need("nginx", "nginx-light")
    with TemporaryDirectory(prefix="trotline-nginx-") as name:
        folder = Path(name)
        [listening] = listen(["127.0.0.1"])
        port = listening.getsockname()[1]
        with listening, (folder / "output.log").open("wb") as output:
            configuration = folder / "nginx.conf"
            configuration.write_text(_configuration(binary, root, port, latency, access_log))
            server = subprocess.Popen(  # noqa: S603  Our own arguments, no shell.
                [binary, "-p", folder, "-e", folder / "error.log", "-c", configuration],
                # nginx takes over sockets named in this variable (its way of upgrading without a gap),
                # so the port is ours from the moment it was chosen.
                env={**os.environ, "NGINX": f"{listening.fileno()};"},
                pass_fds=[listening.fileno()],
                stdout=output,
                stderr=output,
            )
        try:
            _wait_for_answer(server, port, folder)
            yield Nginx(f"http://127.0.0.1:{port}", folder, server.pid)
        finally:
            _stop(server)


def _wait_for_answer(server: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
    """The socket accepts before nginx is up, so readiness is an answer, not a connection."""
    deadline = time.monotonic() + _ANSWER_WITHIN
    while server.poll() is None and time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_WITHIN)
        try:
            connection.request("GET", "/.ready")
            connection.getresponse().read()
            return
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
        finally:
            connection.close()
    _stop(server)
    logs = "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')}" for log in sorted(folder.glob("*.log")))
    raise RuntimeError(f"nginx did not start on port {port} (exit code {server.returncode})\n{logs}")


def _stop(server: "subprocess.Popen[bytes]") -> None:
    if server.poll() is None:
        server.send_signal(signal.SIGTERM)
    try:
        server.wait(_STOP_WITHIN)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _configuration(binary: Path, root: Path, port: int, latency: float | None, access_log: bool) -> str:
    # Workers of a root master would otherwise run as user nobody, who may not read a test's folder.
    user = "user root;" if os.geteuid() == 0 else ""
    log = "access_log access.log line" if access_log else "access_log off"
    where = f"root {_quoted(root.resolve())}; index index.html;"
    module, locations = "", f"location / {{ {where} }}"
    if latency is not None:
        module = f"load_module {_quoted(_echo_module(binary))};"
        # The rewrite finds the index without a second internal request, which would wait a second time.
        locations = (
            f"location / {{ echo_sleep {latency:.3f}; echo_exec @files; }}\n"
            f"    location @files {{ {where} rewrite ^(.*)/$ $1/index.html break; }}"
        )
    return f"""{module}
{user}
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log warn;
events {{ worker_connections 4096; }}
http {{
  types {{
    text/html html htm; text/css css; application/javascript js; application/json json; text/xml xml;
    text/plain txt; image/png png; image/svg+xml svg; application/gzip gz;
  }}
  default_type application/octet-stream;
  charset utf-8;
  log_format line '$request';
  {log};
  sendfile on;
  keepalive_requests 1000000;
  keepalive_timeout 75s;
  # Redirects keep the address that the client used, port included.
  absolute_redirect off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{
    listen 127.0.0.1:{port};
    location = /.ready {{ access_log off; return 204; }}
    {locations}
  }}
}}
"""


def _echo_module(binary: Path) -> Path:
    """nginx cannot wait by itself; Debian's nginx-light comes with the echo module, which can."""
    output = subprocess.run([binary, "-V"], capture_output=True, text=True, check=True).stderr  # noqa: S603
    found = re.search(r"--modules-path=(\S+)", output)
    module = Path(found[1] if found else "/usr/lib/nginx/modules") / "ngx_http_echo_module.so"
    if not module.exists():
        missing("nginx's echo module is not installed. Try: apt-get install nginx-light")
    return module


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

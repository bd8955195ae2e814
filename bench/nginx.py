"""The web server of the benchmark: one nginx worker on a free loopback port, which logs every request it answers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

HOME = Path(__file__).resolve().parent.parent
CONFIGURATION = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_rlimit_nofile 65536;
events {{ worker_connections 8192; }}
http {{
    types {{ text/html html; text/plain txt; }}
    charset utf-8;
    log_format bench '$msec $request_time $status $uri';
    access_log {log} bench buffer=64k flush=1s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 60s;
    keepalive_requests 1000000000;
    # A cache of open files once ran out of descriptors and stalled whole runs: the page cache is fast enough.
    open_file_cache off;
    {coding}
    server {{ listen 127.0.0.1:{port} backlog=4096; root {root}; }}
}}
"""


GZIP = "gzip on; gzip_comp_level 5; gzip_min_length 256;"
"""Pages as most sites send them. The server's CPU is not counted."""


@dataclass(frozen=True)
class Hits:
    """What the server saw: the moments (seconds since the epoch) at which page requests began, in order."""

    moments: tuple[float, ...]
    distinct: int

    @property
    def window(self) -> float:
        """Seconds between the first and the last page request."""
        return self.moments[-1] - self.moments[0] if self.moments else 0.0

    @property
    def middle_rate(self) -> float:
        """Pages per second of the middle four fifths: without the start, when few links are known, and the end."""
        first, last = len(self.moments) // 10, len(self.moments) * 9 // 10
        return (last - first) / (self.moments[last] - self.moments[first])

    def moment_of(self, share: float) -> float:
        """When this share of the page requests had begun."""
        return self.moments[min(int(len(self.moments) * share), len(self.moments) - 1)]


class Server:
    """A server process over one folder: start it, crawl it, stop it, then ask what it saw."""

    def __init__(self, root: Path, work: Path, *, packs: bool = False) -> None:
        """`packs`: pages are gzip-coded."""
        self.root = root.resolve()
        self.packs = packs
        self.folder = work.resolve()
        self.port = free_port()
        self.log = self.folder / "access.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.cpu = 0.0
        """CPU seconds of the server, known when it has stopped."""

    def command(self) -> list[str]:
        """Nginx with a configuration of its own; nothing outside the work folder is read or written."""
        user = "user root;" if os.geteuid() == 0 else ""
        configuration = self.folder / "nginx.conf"
        places = {"folder": self.folder, "log": self.log, "port": self.port, "root": self.root}
        configuration.write_text(CONFIGURATION.format(user=user, coding=GZIP if self.packs else "", **places))
        return [nginx(), "-p", str(self.folder), "-c", str(configuration), "-e", str(self.folder / "error.log")]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.process = subprocess.Popen(self.command(), cwd=HOME)
        wait_for_port(self.port, self.process)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime

    def hits(self) -> Hits:
        """The page requests of the whole life of the server; ask after it has stopped, because the log is buffered."""
        moments, pages = [], set()
        for line in self.log.read_text().splitlines():
            end, took, _status, address = line.split(" ", 3)
            if address.endswith(".html"):
                moments.append(float(end) - float(took))
                pages.add(address)
        return Hits(tuple(sorted(moments)), len(pages))


def nginx() -> str:
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise SystemExit("bench needs nginx: apt-get install -y --no-install-recommends nginx-light")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes], patience: float = 10.0) -> None:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the server on port {port} stopped with exit code {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit(f"the server on port {port} did not start within {patience:.0f} s")

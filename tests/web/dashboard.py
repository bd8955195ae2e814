"""A fleet on this machine with a dashboard in front of it, for tests: real processes, a real Redis, a real browser."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.web.hostile_site import HOSTS, SPIDER, HostileSite

from trotline.testing.redis_server import redis
from trotline.testing.server_thread import in_thread

VIEW, OPERATE = "view-" + "v" * 40, "operate-" + "o" * 40
WITHIN = 60.0


@dataclass
class Dashboard:
    """`trotline web` for the jobs of one Redis; commands run in `folder`."""

    folder: Path
    frontier: str
    site: HostileSite
    url: str = ""
    hosts: dict[str, list[str]] = field(default_factory=dict)
    """Addresses by spider."""
    web: "subprocess.Popen[str] | None" = None
    processes: "list[subprocess.Popen[str]]" = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "TROTLINE_FRONTIER": self.frontier,
            "TROTLINE_ALLOW_PRIVATE": "yes",
            "VIEW_TOKEN": VIEW,
            "OPERATE_TOKEN": OPERATE,
        }

    def spider(self, name: str, pace: str) -> str:
        """Its file. Every spider has hosts of its own."""
        self.hosts[name] = self.site.addresses[HOSTS * len(self.hosts) :][:HOSTS]
        seeds = [f"{address}/" for address in self.hosts[name]]
        (self.folder / f"{name}.py").write_text(SPIDER.format(name=name, pace=pace, seeds=seeds))
        return f"{name}.py"

    def start(self, *words: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "trotline.cli", *words],
            cwd=self.folder, env=self.environment, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def call(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "trotline.cli", *words],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=WITHIN, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def open(self) -> None:
        """Start the web server, and wait until it listens."""
        tokens = ("--token-view", "env:VIEW_TOKEN", "--token-operate", "env:OPERATE_TOKEN")
        self.web = self.start("web", "--listen", "127.0.0.1:0", *tokens)
        assert self.web.stdout is not None
        for line in self.web.stdout:
            if line.startswith("listening on "):
                self.url = line.split()[2].rstrip("/")
                return
        raise AssertionError("trotline web did not start")

    def api(self, path: str) -> Any:
        place = urlsplit(self.url)
        connection = HTTPConnection(str(place.hostname), place.port, timeout=10)
        try:
            connection.request("GET", f"/api/v1/{path}", headers={"Authorization": f"Bearer {OPERATE}"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            return json.load(answer)
        finally:
            connection.close()

    def job_of(self, spider: str) -> str:
        """The id of its newest job, as soon as the server has read the list of jobs again."""
        deadline = time.monotonic() + 30
        while not (views := self.api(f"jobs?spider={spider}")["jobs"]):
            assert time.monotonic() < deadline, f"no job of {spider}"
            time.sleep(0.2)
        [view, *_] = views
        return str(view["job"])

    def until(self, job: str, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the job is as it should be, by the API."""
        end = time.monotonic() + WITHIN
        while True:
            view: dict[str, Any] = self.api(f"jobs/{job}")
            if fits(view):
                return view
            assert time.monotonic() < end, view
            time.sleep(0.2)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def dashboard(folder: Path, items: int = 40) -> Iterator[Dashboard]:
    with redis() as server, in_thread(HostileSite(items), "hostile site") as site:
        opened = Dashboard(folder, server.url, site)
        try:
            opened.open()
            yield opened
        finally:
            opened.close()

"""The containers of deploy/compose.yaml, as podman-compose starts them."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.deploy.engine import IMAGE, Engine
from tests.deploy.tools import DEPLOY, tool

PRODUCTS = 1_200
"""Of the demo shop: with the slow pace of compose_checks.py more than a busy machine does while it is scaled."""
WITHIN = 90.0


class Fleet:
    """The containers of compose.yaml."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(DEPLOY, folder, ignore=shutil.ignore_patterns("secrets", ".env", "__pycache__"))
        engine.run(folder / "make-secrets")
        engine.environment["DEMO_PRODUCTS"] = str(PRODUCTS)
        self.has_web = "--listen" in self._help("web")
        self.has_metrics = "--metrics" in self._help("work")
        self.services = ["valkey", "postgres", "coordinator", "worker", "shop", *(["web"] if self.has_web else [])]

    def _help(self, command: str) -> str:
        words = ["--rm", "--network", "none", IMAGE, command, "--help"]
        return self.engine.run("podman", "run", *words, check=False).stdout

    def compose(self, *words: str) -> None:
        files = ["-f", self.folder / "compose.yaml", "-f", self.folder / "compose.demo.yaml"]
        self.engine.run(sys.executable, tool("podman-compose"), *files, *words)

    def up(self, workers: int | None = None) -> None:
        scale = [] if workers is None else ["--scale", f"worker={workers}"]
        self.compose("up", "--detach", "--no-build", *scale, *self.services)

    def inside(self, service: str, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return self.engine.run("podman", "exec", f"trotline_{service}_1", *words, check=check)

    def call(self, *words: str, check: bool = True) -> str:
        return self.inside("coordinator", "trotline", *words, check=check).stdout

    def look(self) -> dict[str, Any]:
        """The job as an operator sees it. On a busy machine a command may not reach Valkey in time: it is repeated."""
        watch = ("trotline", "watch", "shop", "--once", "--json")
        started = time.monotonic()
        while (ended := self.inside("coordinator", *watch, check=False)).returncode:
            expect(time.monotonic() - started < WITHIN, f"trotline watch fails: {ended.stderr}")
        return dict(json.loads(ended.stdout.splitlines()[0]))

    def job(self) -> dict[str, Any]:
        return dict(json.loads(self.call("jobs", "shop", "--json").splitlines()[0]))

    def until(self, fits: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        started = time.monotonic()
        while not fits(seen := self.look()):
            expect(time.monotonic() - started < WITHIN, f"{what}: not within {WITHIN:.0f} s: {seen}")
            time.sleep(0.5)
        return seen

    def running(self) -> list[str]:
        """Names of the workers, in the order of their numbers."""
        listed = self.engine.run("podman", "ps", "--format", "{{.Names}}").stdout.split()
        return sorted(name for name in listed if name.startswith("trotline_worker_"))

    def state(self, name: str, form: str) -> str:
        return self.engine.run("podman", "inspect", "--format", form, name).stdout.strip()

    def scale(self, workers: int) -> float:
        """Seconds that the change took. podman-compose adds containers, but removes none: we stop them as it would."""
        started = time.monotonic()
        running = self.running()
        if workers > len(running):
            self.up(workers)
        elif leaving := running[workers:]:
            self.engine.run("podman", "stop", "--time", "40", *leaving)
            codes = {name: self.state(name, "{{.State.ExitCode}}") for name in leaving}
            expect(set(codes.values()) == {"130"}, f"workers that were stopped end with 130: {codes}")
        took = time.monotonic() - started
        expect(len(self.running()) == workers, f"{workers} workers run: {self.running()}")
        return took


def expect(fact: bool, what: str) -> None:
    if not fact:
        raise AssertionError(what)

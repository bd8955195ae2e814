"""The Dockerfile, what it copies, what it installs, and the health check; building it is in compose_run.py."""

import http.server
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy import health
from tests.deploy.tools import DEPLOY, ROOT, run

DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
REQUIREMENTS = ROOT / "requirements"


def stages() -> list[tuple[str, str]]:
    return re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.M)


def packages(name: str) -> dict[str, str]:
    """Name -> version of a lock file."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (REQUIREMENTS / name).read_text(), re.M))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_hadolint_has_nothing_to_say() -> None:
    ended = run("hadolint", "--failure-threshold", "style", DEPLOY / "Dockerfile")
    assert (ended.returncode, ended.stdout) == (0, ""), ended


def test_shellcheck_has_nothing_to_say() -> None:
    ended = run("shellcheck", DEPLOY / "make-secrets")
    assert (ended.returncode, ended.stdout) == (0, ""), ended


def test_packages_are_built_and_run_on_the_same_base_and_the_default_is_the_small_image() -> None:
    bases = [base for base, _ in stages() if base not in {name for _, name in stages()}]
    assert set(bases) == {"python:${PYTHON}-slim"}
    assert len(bases) == 2
    assert [name for _, name in stages()][-2:] == ["full", "trotline"]


def test_every_package_is_installed_by_its_hash() -> None:
    installs = re.findall(r"install \\?\s*[^&]*?(?=&&|\n[A-Z#]|$)", DOCKERFILE)
    of_packages = [words for words in installs if "-r requirements/" in words]
    assert len(of_packages) == 3
    assert all("--require-hashes" in words for words in of_packages)


def test_the_image_ends_as_an_ordinary_user_under_an_init_that_passes_signals() -> None:
    runtime = DOCKERFILE.partition("AS runtime")[2]
    assert re.findall(r"^USER (.+)$", runtime, re.M) == ["10001:10001"]
    assert 'ENTRYPOINT ["tini", "--", "trotline"]' in runtime
    assert re.search(r"^HEALTHCHECK .*\\\n    CMD \[", runtime, re.M)


def test_what_is_copied_is_there_and_nothing_else_gets_into_the_build() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    words = [line.split()[1:-1] for line in re.findall(r"^COPY (?!--from).*$", DOCKERFILE, re.M)]
    copied = {source for each in words for source in each}
    assert copied == set(allowed)
    assert [source for source in copied if not (ROOT / source).exists()] == []


ONLY_IN_FULL = {"sqs", "parquet", "pydantic", "browser", "images", "markdown", "merge", "otel"}


@pytest.mark.parametrize(("lock", "left_out"), [("image.txt", ONLY_IN_FULL), ("image-full.txt", set())])
def test_an_image_has_the_packages_of_its_extras_in_the_tested_versions(lock: str, left_out: set[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # The add-on runs in the environment of a Scrapy project.
    extras = {name: each for name, each in project["optional-dependencies"].items() if name != "scrapy"}
    of = {name: {normal(re.split(r"[\[<>=;~! ]", one)[0]) for one in each} for name, each in extras.items()}
    wanted = {normal(re.split(r"[\[<>=;~! ]", one)[0]) for one in project["dependencies"]}
    wanted.update(*(names for name, names in of.items() if name not in left_out))
    image, tested = packages(lock), packages("run.txt")
    assert wanted - {"trotline"} <= image.keys(), "make lock"
    unwanted = {"scrapy", *(one for name in left_out for one in of[name])} - wanted
    assert not unwanted & image.keys()
    assert {name: version for name, version in image.items() if tested.get(name, version) != version} == {}


ONLY_OF_THE_IMAGE = """
import importlib.metadata, re, sys
from importlib.machinery import PathFinder
given = {re.sub(r"[-_.]+", "-", name).lower() for name in sys.argv.pop(1).split()} | {"trotline"}
others = {
    top for top, names in importlib.metadata.packages_distributions().items()
    if not given & {re.sub(r"[-_.]+", "-", name).lower() for name in names}
}

class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in others else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
import runpy
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
"""Runs a script as if only the packages of its first argument were installed."""


@pytest.mark.slow("it compiles every module")
@pytest.mark.parametrize(("lock", "option"), [("image.txt", []), ("image-full.txt", ["--full"])])
def test_the_modules_of_an_image_can_be_imported_with_its_packages(
    lock: str, option: list[str], tmp_path: Path
) -> None:
    script = [ONLY_OF_THE_IMAGE, " ".join(packages(lock)), str(DEPLOY / "compile_bytecode.py"), *option]
    words = ["-X", f"pycache_prefix={tmp_path}", "-c", *script]
    ended = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert re.match(r"bytecode of \d{3,} modules", ended.stdout)


# The health check


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def site() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def checked(port: int, path: str = "/") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-I", "-S", DEPLOY / "health.py"],
        env={**os.environ, "HEALTH_PORT": str(port), "HEALTH_PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(("status", "code"), [(200, 0), (401, 0), (421, 0), (500, 1), (503, 1)])
def test_a_process_that_answers_is_healthy_unless_it_fails(status: int, code: int) -> None:
    with site() as port:
        ended = checked(port, f"/{status}")
    assert ended.returncode == code, ended
    assert (f"status {status}" in ended.stderr) is bool(code)


def test_a_process_that_does_not_answer_is_not_healthy() -> None:
    with site() as port:
        pass
    ended = checked(port)
    assert ended.returncode == 1
    assert f"port {port} does not answer: ConnectionRefusedError" in ended.stderr


@pytest.mark.parametrize(
    ("state", "trouble"), [("S", ""), ("R", ""), ("T", "no running process"), ("Z", "no running process")]
)
def test_without_a_port_the_child_of_the_init_must_not_be_suspended(tmp_path: Path, state: str, trouble: str) -> None:
    for pid, name, its_state, parent in ((1, "tini", "S", 0), (7, "a (b) c", state, 1), (9, "health", "R", 0)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} ({name}) {its_state} {parent} 7 7 0 -1\n")
    assert health._state(tmp_path) == trouble

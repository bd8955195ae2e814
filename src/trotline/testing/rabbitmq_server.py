"""A real RabbitMQ for tests and demos: its own folder, free loopback ports, ended by id, with its epmd.

Debian's rabbitmq-server; as root it runs as root. One server is shared by a whole run of tests, as it takes seconds to
start: tests have a virtual host of their own. `newer()` is that of the next Debian, in a folder of its own, which
`make rabbitmq4` installs.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from trotline.testing.servers import listen, missing

_PROGRAMS = Path("/usr/lib/rabbitmq/bin")
_NEWER = Path("dist/rabbitmq-4")
_START_WITHIN = 90.0
_STOP_WITHIN = 30.0
USER, PASSWORD = "guest", "guest"


def programs() -> Path:
    """Where they are; where they are missing the test is skipped, and fails in CI."""
    if not (_PROGRAMS / "rabbitmq-server").exists() or shutil.which("epmd") is None:
        missing("rabbitmq-server is not installed. Try: apt-get install rabbitmq-server")
    return _PROGRAMS


def newer() -> Path:
    """The root folder of a system with RabbitMQ 4; where it is missing the test is skipped."""
    root = Path(os.environ.get("TROTLINE_RABBITMQ4", _NEWER)).absolute()
    if not (root / "usr/lib/rabbitmq/bin/rabbitmq-server").exists() or os.geteuid() != 0:
        import pytest  # Only tests come here.

        pytest.skip("RabbitMQ 4 is not installed, or we are not root. Try: make rabbitmq4")
    return root


class RabbitServer:
    """A server process. `start`, `stop` and `kill` may be called in turn: the data stays until the folder goes."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        beside: "RabbitServer | None" = None,
        root: Path | None = None,
    ) -> None:
        """`beside`: another node of the same cluster, whose epmd and cookie it uses. `root`: of the system that it runs
        in, with the folder; None: this one."""
        self.folder = folder
        self._beside = beside
        self._root = root
        self._programs = programs() if root is None else _PROGRAMS
        self._settings = {"loopback_users": "none", "log.console": "true", "log.file": "false", **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._epmd: subprocess.Popen[bytes] | None = None
        self.port, self._dist_port, self._epmd_port = _free_ports(3)
        if beside is not None:
            self._epmd_port = beside._epmd_port

    @property
    def node(self) -> str:
        return f"trotline{self.port}@localhost"

    @property
    def url(self) -> str:
        """Of the default virtual host."""
        return f"amqp://{USER}:{PASSWORD}@127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of its script, and the id of the process group of all that this started."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def _environment(self) -> dict[str, str]:
        folder = self._inside(self.folder)
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))},
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_LOG_BASE": f"{folder}/log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/enabled_plugins",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            # Where the cookie is.
            "HOME": folder if self._beside is None else self._inside(self._beside.folder),
        }

    def _inside(self, path: Path) -> str:
        """The path as the server sees it."""
        return str(path) if self._root is None else f"/{path.relative_to(self._root)}"

    def _command(self, *words: str) -> list[str]:
        return list(words) if self._root is None else ["chroot", str(self._root), *words]

    def start(self) -> None:
        """Up and answering, on the port that it had before."""
        (self.folder / "enabled_plugins").write_text("[].\n")
        (self.folder / "rabbitmq.conf").write_text("".join(f"{k} = {v}\n" for k, v in self._settings.items()))
        if self._epmd is None and self._beside is None:
            self._epmd = self._spawn("epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1")
        self._process = self._spawn(str(self._programs / "rabbitmq-server"))
        deadline = time.monotonic() + _START_WITHIN
        while self._process.poll() is None and time.monotonic() < deadline:
            if "Server startup complete" in self.log():
                return
            time.sleep(0.1)
        self.close()
        raise RuntimeError(f"RabbitMQ did not start\n{self.log()[-4000:]}")

    def stop(self) -> None:
        """As an operator stops it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """`kill -9` of the server and what it started."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()
            self._epmd = None

    def control(self, *words: str) -> str:
        """`rabbitmqctl`; takes a second."""
        done = subprocess.run(  # noqa: S603  Our own arguments, no shell.
            self._command(str(self._programs / "rabbitmqctl"), "--quiet", *words),
            env=self._environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def log(self) -> str:
        log = self.folder / "server.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def _spawn(self, *command: str) -> "subprocess.Popen[bytes]":
        # Of this start only: it says when the server is up.
        with (self.folder / "server.log").open("wb") as log:
            # A session of its own: the program is a script, and what it starts ends with its group.
            return subprocess.Popen(  # noqa: S603  Our own arguments, no shell.
                self._command(*command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env=self._environment, start_new_session=True,
            )  # fmt: skip

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        # The group that we made: the server program is a child of its script.
        os.killpg(self._process.pid, how)
        try:
            self._process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None


@contextmanager
def rabbitmq(settings: Mapping[str, str] | None = None, root: Path | None = None) -> Iterator[RabbitServer]:
    """A running server that is gone afterwards, with its folder. `root`: see RabbitServer."""
    inside = None if root is None else root / "tmp"
    with (
        TemporaryDirectory(prefix="trotline-rabbitmq-", dir=inside, ignore_cleanup_errors=True) as name,
        ExitStack() as running,
    ):
        server = RabbitServer(Path(name), settings, root=root)
        running.callback(server.close)
        server.start()
        yield server


@contextmanager
def rabbitmq_cluster(nodes: int = 3) -> Iterator[list[RabbitServer]]:
    """A cluster of nodes that is gone afterwards."""
    with TemporaryDirectory(prefix="trotline-rabbitmq-", ignore_cleanup_errors=True) as name, ExitStack() as running:
        members: list[RabbitServer] = []
        for number in range(nodes):
            folder = Path(name) / str(number)
            folder.mkdir()
            member = RabbitServer(folder, beside=members[0] if members else None)
            running.callback(member.close)
            member.start()
            if members:
                member.control("stop_app")
                member.control("join_cluster", members[0].node)
                member.control("start_app")
            members.append(member)
        yield members


def _free_ports(count: int) -> list[int]:
    opened = [listen(["127.0.0.1"])[0] for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in opened]
    for each in opened:
        each.close()
    return ports

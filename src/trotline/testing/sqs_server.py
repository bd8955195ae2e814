"""A real server for SQS in tests and demos: `ministack` from pip, on a free loopback port, ended by its id.

It keeps messages in memory, and in a file while it is stopped in an orderly way: what AWS promises about durability
cannot be tested with it. It accepts any credentials.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from trotline.testing.servers import listen, missing

REGION = "eu-central-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "trotline-test-key", "AWS_SECRET_ACCESS_KEY": "trotline-test-secret"}
_START_WITHIN = 30.0
_STOP_WITHIN = 15.0


class SqsServer:
    """A server process. `start` and `stop` may be called in turn: the queues stay until the folder goes."""

    def __init__(self, folder: Path) -> None:
        if find_spec("ministack") is None:
            missing("ministack is not installed. Try: pip install ministack")
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        [listening] = listen(["127.0.0.1"])
        self.port = int(listening.getsockname()[1])
        listening.close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Without books."""
        return f"sqs://{REGION}/test?endpoint={self.endpoint}"

    def inbox_url(self, name: str) -> str:
        return f"sqs://{REGION}?endpoint={self.endpoint}&inbox={name}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MINISTACK_"))},
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "SERVICES": "sqs",
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "LOG_LEVEL": "WARNING",
            "PERSIST_STATE": "1",
            "STATE_DIR": str(self.folder / "state"),
            "TMPDIR": str(self.folder),
        }
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ministack"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env=environment, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + _START_WITHIN
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._answers():
                return
            time.sleep(0.05)
        self.kill()
        log_text = (self.folder / "server.log").read_text(errors="replace")
        raise RuntimeError(f"ministack did not start\n{log_text[-4000:]}")

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.endpoint}/_ministack/health", timeout=1) as answer:  # noqa: S310  Our own server.
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """Messages are written to its file."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """What it had in memory is lost."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """It answers no more, and forgets nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGCONT)
            os.kill(self._process.pid, how)
        try:
            self._process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


@contextmanager
def sqs() -> Iterator[SqsServer]:
    """A running server that is gone afterwards, with its folder."""
    with TemporaryDirectory(prefix="trotline-sqs-", ignore_cleanup_errors=True) as name, ExitStack() as running:
        server = SqsServer(Path(name))
        running.callback(server.kill)
        server.start()
        yield server

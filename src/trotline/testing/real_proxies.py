"""Real proxies for tests: squid, tinyproxy, dante and microsocks, on free loopback ports.

    with tinyproxy(leaves_from="127.0.0.21", user="anna", password="s3cret") as proxy:
        ...  # the site sees requests from 127.0.0.21

Each connects to targets from a loopback address of its own, so that a site sees different clients. A proxy that is not
installed skips the test on a laptop, and fails it in CI.
"""

import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from trotline.testing.servers import need

_READY_WITHIN = 15.0
_STOP_WITHIN = 10.0
_count = itertools.count()


@dataclass(frozen=True)
class RealProxy:
    """A running proxy."""

    name: str
    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""
    pid: int = 0

    @property
    def url(self) -> str:
        """With the login that it wants."""
        return self.url_as(self.user, self.password)

    def url_as(self, user: str, password: str) -> str:
        login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user or password else ""
        return f"{self.scheme}://{login}{self.host}:{self.port}"


def squid(*, leaves_from: str = "127.0.0.1", tls: tuple[str, str] | None = None) -> AbstractContextManager[RealProxy]:
    """Squid without a login. `tls`: files of its certificate and key, for TLS to the proxy (host `localhost`)."""
    port = _free_port()
    listens = f"https_port 127.0.0.1:{port} tls-cert={{folder}}/tls.pem tls-key={{folder}}/tls.key"
    # Not root: squid refuses to work as root.
    text = f"""{listens if tls else f"http_port 127.0.0.1:{port}"}
http_access allow all
tcp_outgoing_address {leaves_from}
pid_filename {{folder}}/squid.pid
cache_log {{folder}}/squid.log
access_log none
cache deny all
coredump_dir {{folder}}
max_filedescriptors 4096
cache_effective_user nobody
via off
forwarded_for delete
"""
    host = "localhost" if tls else "127.0.0.1"
    proxy = RealProxy("squid", "https" if tls else "http", host, port)
    files = {"tls.pem": Path(tls[0]).read_text(), "tls.key": Path(tls[1]).read_text()} if tls else {}
    # Its shared memory has this name: two squids with one name do not start.
    name = f"trotline{os.getpid()}x{next(_count)}"
    return _running(proxy, need("squid", "squid"), ["-n", name, "-N", "-f", "{conf}"], text, files, shared_memory=name)


def tinyproxy(
    *, leaves_from: str = "127.0.0.1", user: str = "", password: str = ""
) -> AbstractContextManager[RealProxy]:
    port = _free_port()
    text = f"""Port {port}
Listen 127.0.0.1
Bind {leaves_from}
Timeout 600
MaxClients 400
LogLevel Warning
DisableViaHeader Yes
Allow 127.0.0.0/8
{f"BasicAuth {user} {password}" if user else ""}
"""
    proxy = RealProxy("tinyproxy", "http", "127.0.0.1", port, user, password)
    return _running(proxy, need("tinyproxy", "tinyproxy"), ["-d", "-c", "{conf}"], text)


def dante(*, leaves_from: str = "127.0.0.1", refuses: str = "127.0.0.99") -> AbstractContextManager[RealProxy]:
    """SOCKS5 without a login. `refuses`: an address that its rules block."""
    port = _free_port()
    text = f"""logoutput: {{folder}}/danted.log
internal: 127.0.0.1 port = {port}
external: {leaves_from}
socksmethod: none
clientmethod: none
client pass {{{{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}}}
socks block {{{{ from: 0.0.0.0/0 to: {refuses}/32 }}}}
socks pass {{{{ from: 0.0.0.0/0 to: 0.0.0.0/0 protocol: tcp }}}}
"""
    proxy = RealProxy("dante", "socks5", "127.0.0.1", port)
    return _running(proxy, need("danted", "dante-server"), ["-f", "{conf}", "-p", "{folder}/danted.pid"], text)


def microsocks(
    *, leaves_from: str = "127.0.0.1", user: str = "", password: str = ""
) -> AbstractContextManager[RealProxy]:
    """SOCKS5, with a login if one is given. Dante's logins are those of the system's users."""
    port = _free_port()
    words = ["-i", "127.0.0.1", "-p", str(port), "-b", leaves_from, *(["-u", user, "-P", password] if user else [])]
    proxy = RealProxy("microsocks", "socks5", "127.0.0.1", port, user, password)
    return _running(proxy, need("microsocks", "microsocks"), words, "")


@contextmanager
def _running(
    proxy: RealProxy,
    binary: Path,
    words: Sequence[str],
    text: str,
    files: dict[str, str] | None = None,
    *,
    shared_memory: str = "",
) -> Iterator[RealProxy]:
    with TemporaryDirectory(prefix=f"trotline-{proxy.name}-") as place:
        folder = Path(place)
        # Started by root, some become another user, who must read and write here.
        folder.chmod(0o777)
        for name, content in {**(files or {}), "proxy.conf": text.format(folder=folder)}.items():
            (folder / name).write_text(content)
            (folder / name).chmod(0o644)
        told = [word.format(folder=folder, conf=folder / "proxy.conf") for word in words]
        with (folder / "output.log").open("wb") as output:
            # A session of its own: dante has child processes, and does not take them along when it is killed.
            server = subprocess.Popen([binary, *told], stdout=output, stderr=output, start_new_session=True)  # noqa: S603
        try:
            _wait_for_port(server, proxy, folder)
            yield RealProxy(proxy.name, proxy.scheme, proxy.host, proxy.port, proxy.user, proxy.password, server.pid)
        finally:
            _stop(server)
            if shared_memory:
                for left in Path("/dev/shm").glob(f"{shared_memory}-*"):  # noqa: S108 - where POSIX shared memory is
                    left.unlink(missing_ok=True)


def _wait_for_port(server: "subprocess.Popen[bytes]", proxy: RealProxy, folder: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    while server.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", proxy.port), timeout=1.0).close()
            return
        except OSError:
            time.sleep(0.02)
    logs = "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')}" for log in sorted(folder.glob("*.log")))
    raise RuntimeError(f"{proxy.name} did not start on port {proxy.port} (exit code {server.returncode})\n{logs}")


def _stop(server: "subprocess.Popen[bytes]") -> None:
    """With its children, at once: they keep nothing."""
    try:
        os.killpg(server.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        server.wait(_STOP_WITHIN)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])

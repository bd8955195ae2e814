"""Canaries as the logins of proxies: the proxies get them, and they are nowhere else: not in what is printed, in files,
in the server of the frontier, or in what `ps` shows."""

import asyncio
import signal
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import Running, call, start
from tests.e2e.ways import ApiServer

from trotline.testing.proxy import ForwardProxy
from trotline.testing.real_proxies import RealProxy, microsocks
from trotline.testing.redis_server import RedisServer, redis

HTTP, SOCKS, WRONG, DEAD = "canary-http/%7q", "canary-socks-8r", "canary-wrong-9s", "canary-dead-1t"
GATE, API = "canary-gate-2u", "canary-api-3v"
IN_FILE = (HTTP, SOCKS, WRONG, DEAD)
IN_ENVIRONMENT = {"GATE_PASSWORD": GATE, "API_KEY": API}
GOOD = ("http", "socks", "gate", "api")
COUNTED = (*(f"proxy good: {pool}" for pool in GOOD), "proxy fault: wrong", "proxy fault: dead")
SPIDER = """
from trotline import Page, Spider

site = Spider("site", pool="http", pace="50/s", robots=False, hosts=["127.0.0.1"])

def seeds():
    yield page.task("{url}/held/slow")
    for place, pool in enumerate(("http", "socks", "gate", "api", "wrong", "dead"), 1):
        yield page.task("{url}/page/" + str(place), pool=pool)

@site.page(key="name", seeds=seeds)
def page(page: Page):
    yield {{"name": page.css("h1::text").get()}}
"""
POOLS = """
[pools.http]
list = "list.txt"

[pools.socks]
proxies = ["{socks}"]

[pools.gate]
endpoint = "http://{gate}"
user = "customer-anna-session-{{session}}"
password = "env:GATE_PASSWORD"
slots = 3

[pools.api]
endpoint = "http://127.0.0.1:{api}/"
key = "env:API_KEY"

[pools.wrong]
proxies = ["http://anna:{wrong}@{other}"]

[pools.dead]
proxies = ["http://anna:{dead}@127.0.0.1:9"]
"""


@dataclass
class Setup:
    """The proxies, their files, and everything that was said or written."""

    folder: Path
    site: HeldSite
    http: ForwardProxy
    gate: ForwardProxy
    api: ApiServer
    environment: dict[str, str] = field(default_factory=dict)
    said: list[bytes] = field(default_factory=list)

    async def call(self, *words: str) -> None:
        ended = await call(self.folder, *words, env=self.environment)
        self.said.append(f"$ {words} {ended.code}\n{ended.out}\n{ended.err}".encode())

    def files(self) -> list[bytes]:
        own = {"proxies.toml", "list.txt"}
        found = [file for file in self.folder.rglob("*") if file.is_file() and file.name not in own]
        return [str(file).encode() + b"\n" + file.read_bytes() for file in found]


@pytest.fixture(scope="module")
def socks() -> Iterator[RealProxy]:
    with microsocks(user="anna", password=SOCKS) as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis(settings={"rdbcompression": "no"}) as running:
        yield running


@asynccontextmanager
async def setup(folder: Path, socks: RealProxy) -> AsyncIterator[Setup]:
    async with (
        HeldSite(pages=6) as site,
        ForwardProxy(user="anna", password=HTTP) as http,
        ForwardProxy() as gate,
        ForwardProxy(user="anna", password="another") as other,  # noqa: S106 - not the one that we send
        ApiServer() as api,
    ):
        api.key = API
        (folder / "site.py").write_text(SPIDER.format(url=site.url))
        (folder / "list.txt").write_text(http.url)
        places = {"socks": socks.url, "gate": gate.public, "api": api.port, "other": other.public}
        (folder / "proxies.toml").write_text(POOLS.format(wrong=WRONG, dead=DEAD, **places))
        for name in ("list.txt", "proxies.toml"):
            (folder / name).chmod(0o600)
        (folder / "tmp").mkdir()
        environment = {"TMPDIR": str(folder / "tmp"), "TROTLINE_PROXIES": "proxies.toml", **IN_ENVIRONMENT}
        environment |= {"TROTLINE_ALLOW_PRIVATE": "yes"}
        yield Setup(folder, site, http, gate, api, environment)


def forms(canary: str) -> list[bytes]:
    """How it may be written: as it is, in a URL, in a header."""
    headers = [b64encode(f"{user}:{canary}".encode()) for user in ("anna", "")]
    return [canary.encode(), quote(canary, safe="").encode(), *headers]


def leaks(texts: list[bytes], canaries: tuple[str, ...]) -> list[bytes]:
    return [text[:2000] for text in texts for canary in canaries for form in forms(canary) if form in text]


def processes(running: Running) -> list[tuple[bytes, bytes]]:
    """Arguments and environment of every process of the command."""
    pids = [running.process.pid, *running.children()]
    return [(Path(f"/proc/{pid}/cmdline").read_bytes(), Path(f"/proc/{pid}/environ").read_bytes()) for pid in pids]


async def worked(scene: Setup, *words: str) -> None:
    """Until each good pool has fetched its page, and the others have failed; with a look at the processes."""
    running = await start(scene.folder, *words, env=scene.environment)
    await scene.site.arrived()
    looked = processes(running)
    assert len(looked) >= 2
    scene.said += [arguments for arguments, _ in looked]
    for _, environment in looked:
        assert leaks([environment], IN_FILE) == [], "only what came by the environment is there"
        for name, canary in IN_ENVIRONMENT.items():
            assert environment.count(canary.encode()) == environment.count(f"{name}={canary}".encode()) == 1
    scene.site.release()
    async with asyncio.timeout(60):
        while True:
            seen = await call(scene.folder, "status", "site", "--json", env=scene.environment)
            if all(f'"{name}"' in seen.out for name in COUNTED):
                break
            await asyncio.sleep(0.2)
    running.process.send_signal(signal.SIGINT)
    ended = await running.end()
    scene.said.append(f"{ended.out}\n{ended.err}".encode())


async def looked_at(scene: Setup) -> None:
    """Every command that shows something."""
    for words in (
        ("status",), ("status", "site"), ("status", "site", "--json"), ("watch", "site", "--once"), ("jobs",),
        ("watch", "site", "--once", "--json"), ("dead", "site"), ("dead", "site", "--json"), ("doctor", "site.py"),
        ("doctor", "site.py", "--json"), ("trace", f"{scene.site.url}/page/5", "site.py"),
        ("trace", f"{scene.site.url}/page/1", "site.py", "--json"), ("pace",),
        *(("try", "site.py", f"{scene.site.url}/page/1", "--pool", pool, "--all") for pool in (*GOOD, "wrong", "dead")),
        ("try", "site.py", f"{scene.site.url}/page/1", "--pool", "wrong", "--json"),
    ):  # fmt: skip
        await scene.call(*words)


def received(scene: Setup) -> None:
    """They were used: a canary that is never sent cannot leak."""
    assert {asked.login for asked in scene.http.asked} == {f"anna:{HTTP}"}
    assert all(asked.login.startswith("customer-anna-session-") for asked in scene.gate.asked)
    assert {asked.login.partition(":")[2] for asked in scene.gate.asked} == {GATE}
    assert scene.api.asked
    assert set(scene.site.visits) == {"held/slow", *(f"page/{place}" for place in range(1, len(GOOD) + 1))}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("frontier", ["sqlite", "redis"])
async def test_the_logins_of_proxies_are_seen_nowhere_but_at_the_proxies(
    tmp_path: Path, socks: RealProxy, server: RedisServer, frontier: str
) -> None:
    async with setup(tmp_path, socks) as scene:
        if frontier == "redis":
            server.command("FLUSHALL")
            scene.environment["TROTLINE_FRONTIER"] = server.url
            await scene.call("start", "site.py", "--detach")
            await worked(scene, "work", "site.py", "--processes", "2")
            server.command("SAVE")
            # The dump, and the append-only file with every command that has changed something.
            kept = [file.read_bytes() for file in server.folder.rglob("*") if file.is_file()]
            assert sum(b"site.py" in file for file in kept) >= 2, "they are not compressed"
            scene.said += kept
        else:
            await worked(scene, "run", "site.py", "--processes", "2")
        await looked_at(scene)
        received(scene)

    everywhere = [*scene.said, *scene.files()]
    assert leaks(everywhere, (*IN_FILE, *IN_ENVIRONMENT.values())) == []
    assert leaks([(tmp_path / "proxies.toml").read_bytes()], (SOCKS,)), "it would be found"
    assert any(b"authentication failed (407)" in text for text in scene.said), "failures are told"

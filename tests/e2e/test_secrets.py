"""A canary in a URL's user info, a cookie, a header and query keys: it reaches its own host and is seen nowhere."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.raw_site import Site, ok, site
from tests.e2e.running import Ended, Running, call, progress_of, rows_of, start

CANARY = "canary4d1f7a"
OWN, OTHER = "127.0.0.1", "127.0.0.2"
RUN = ("run", "shop.py", "--allow-private")

SPIDER = """
import os, sys
from dataclasses import dataclass
from trotline import Page, Secret, Spider

shop = Spider(
    "shop", pace="1000/s", retries=0,
    headers={"Authorization": Secret.env("SHOP_TOKEN"), "X-Api-Key": os.environ["SHOP_KEY"], "X-Page": "yes"},
    cookies={"session": Secret.file("session.txt")},
    redact=["ticket"],
)

@dataclass
class Thing:
    name: str
    where: str

@shop.page(seeds=["http://OWN/"], key="name")
def page(page: Page):
    print("reading", page.url)
    if "/raise" in page.url:
        raise ValueError(f"cannot read {page.url} with {os.environ['SHOP_TOKEN']} and {page.url.partition('=')[2]}")
    if "/reject" in page.url:
        yield Thing(name=None, where=page.url)
        return
    for link in page.links("a"):
        yield page.task(link)
    yield Thing(name=page.title or page.url, where=page.url)

if os.environ.get("BREAK"):
    from trotline.config import backends, components

    def broken(*_, **__):
        key, token = os.environ["SHOP_KEY"], os.environ["SHOP_TOKEN"]
        raise RuntimeError(f"https://anna:{key}@a.test/?token=CANARY with {token}")

    setattr(backends if os.environ["BREAK"] == "open_jobs" else components, os.environ["BREAK"], broken)
"""


class Shop:
    """A site of two hosts that leaks its visitors' secrets wherever it can."""

    def __init__(self) -> None:
        self.hold = asyncio.Event()
        self.held = asyncio.Event()
        self.site: Site
        self.elsewhere: Site

    async def reply(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        path = request.split(b" ", 2)[1].decode()
        port = self.site.port
        if path == "/robots.txt":
            there = "" if _host(request) == OTHER else f"Location: http://{OTHER}:{port}/robots.txt?token={CANARY}"
            writer.write(ok(b"", there, status="302 Found") if there else ok(b"", status="404 Not Found"))
        elif path == "/":
            links = (
                "/ok?token=", "/gone?token=", "/broken?ticket=", "/raise?token=", "/reject?api_key=", "/away?sig=",
                "/port?token=", "/slow?token=", f"http://anna:{CANARY}@{OWN}:{port}/user?token=",
            )  # fmt: skip
            anchors = "".join(f'<a href="{link}{CANARY}">x</a>' for link in links)
            writer.write(ok(f"<title>start</title>{anchors}".encode(), "Content-Type: text/html"))
        elif path.startswith("/gone"):
            writer.write(ok(b"", status="404 Not Found"))
        elif path.startswith("/broken"):
            writer.write(ok(b"", status="500 Oops"))
        elif path.startswith("/away"):
            writer.write(ok(b"", f"Location: http://{OTHER}:{port}/landing?token={CANARY}", status="302 Found"))
        elif path.startswith("/port"):
            there = f"http://{OWN}:{self.elsewhere.port}/landing?token={CANARY}"
            writer.write(ok(b"", f"Location: {there}", f"Set-Cookie: sid={CANARY}", status="302 Found"))
        else:
            if path.startswith("/slow"):
                self.held.set()
                await self.hold.wait()
            title = path.partition("?")[0]
            writer.write(ok(f"<title>{title}</title>".encode(), "Content-Type: text/html", f"X-Auth-Token: {CANARY}"))


def _host(request: bytes) -> str:
    [line] = [line for line in request.split(b"\r\n") if line.lower().startswith(b"host:")]
    return line.split(b":")[1].strip().decode()


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    made = Shop()
    async with site(made.reply, hosts=2) as made.site, site(made.reply) as made.elsewhere:
        yield made
        made.hold.set()


class Folder:
    """The spider's folder, and everything that was said or written there."""

    def __init__(self, path: Path, shop: Shop) -> None:
        self.path = path
        self.said: list[str] = []
        self.env = {"SHOP_TOKEN": f"Bearer {CANARY}", "SHOP_KEY": f"{CANARY}-key", "TMPDIR": str(path / "tmp")}
        (path / "tmp").mkdir()
        (path / "session.txt").touch(mode=0o600)
        (path / "session.txt").write_text(CANARY + "\n")
        (path / "shop.py").write_text(SPIDER.replace("OWN", f"{OWN}:{shop.site.port}").replace("CANARY", CANARY))

    async def start(self, *words: str) -> Running:
        return await start(self.path, *words, env=self.env)

    async def call(self, *words: str, **more: str) -> Ended:
        ended = await call(self.path, *words, env={**self.env, **more})
        self.heard(ended, *words)
        return ended

    def heard(self, ended: Ended, *words: str) -> None:
        self.said.append(f"$ {[word for word in words if CANARY not in word]}\n{ended.out}\n{ended.err}")

    def leaks(self) -> list[str]:
        reports = [*(self.path / "tmp").iterdir(), *self.path.glob("*.jsonl"), *self.path.glob(".trotline/**/*.txt")]
        self.said += [f"{file}\n{file.read_text()}" for file in reports if file.is_file()]
        return [text for text in self.said if CANARY in text]

    def reports(self) -> list[str]:
        return [file.read_text() for file in (self.path / "tmp").glob("trotline-*.txt")]


@pytest.fixture
def folder(tmp_path: Path, shop: Shop) -> Folder:
    return Folder(tmp_path, shop)


def arguments(running: Running) -> str:
    """What `ps` shows of every process of the command."""
    pids = [running.process.pid, *running.children()]
    return "\n".join(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() for pid in pids)


async def killed_and_resumed(folder: Folder, shop: Shop) -> None:
    """A run that is killed with -9 while a page is held back, and the one that finishes it."""
    running = await folder.start(*RUN, "--json", "--processes", "2")
    await asyncio.wait_for(shop.held.wait(), 60)
    shown = arguments(running)
    assert shown.count("trotline") >= 3
    folder.said.append(shown)
    running.signal_all(signal.SIGKILL)
    folder.heard(await running.end())
    shop.hold.set()
    ended = await folder.call(*RUN, "--json")
    assert (ended.code, ended.summary["job"], ended.summary["dead"]) == (3, "shop-1", 2), ended


async def test_a_secret_is_seen_nowhere_and_goes_to_its_own_host_alone(shop: Shop, folder: Folder) -> None:
    await killed_and_resumed(folder, shop)
    url = f"http://{OWN}:{shop.site.port}"
    for words in (
        ("status", "shop"), ("status", "shop", "--json"),
        ("dead", "shop"), ("dead", "shop", "--export", "dead.jsonl"),
        ("dead", "shop", "--export", "-"), ("doctor", "shop.py"), ("doctor", "shop.py", "--json"),
        ("doctor", "--frontier", f"redis://anna:{CANARY}@db/0"), ("run", f"shop.py?token={CANARY}"),
        ("try", "shop.py", "--allow-private", "--all"),
        ("try", "shop.py", f"{url}/raise?token={CANARY}", "--allow-private"),
        ("try", "shop.py", f"{url}/away?token={CANARY}", "--allow-private", "--json"),
        ("try", "shop.py", f"http://anna:{CANARY}@{OWN}:{shop.site.port}/", "--allow-private"),
    ):  # fmt: skip
        await folder.call(*words)
    await tried(folder, f"{url}/ok?ticket={CANARY}")
    graves = [grave for grave in (await folder.call("dead", "shop", "--json")).events if grave["id"][0] != "r"]
    assert len(graves) == 2
    assert all("=(hidden)" in grave["url"] for grave in graves), "the key is there, its value is not"
    await folder.call("dead", "shop", *(grave["id"] for grave in graves))

    assert folder.leaks() == []
    stored = rows_of(folder.path / "shop.db")
    assert any(f"/ok?token={CANARY}" in row["where"] for row in stored), "rows stay as the spider yielded them"
    received(shop)


async def tried(folder: Folder, url: str) -> None:
    """Records are shown as they would be stored; nothing else of the page shows a secret."""
    ended = await call(folder.path, "try", "shop.py", url, "--allow-private", "--json", env=folder.env)
    [told] = ended.events
    assert [record["data"]["where"] for record in told.pop("records")] == [url]
    folder.said.append(f"{told} {ended.err}")


def received(shop: Shop) -> None:
    """What the servers got."""
    own = [one for one in shop.site.requests if _host(one) == OWN]
    assert all(f"Authorization: Bearer {CANARY}".encode() in one for one in own)
    assert all(f"session={CANARY}".encode() in one for one in own)
    other = [one.split(b"\r\n", 1)[1] for one in shop.site.requests if _host(one) == OTHER]
    assert other, "robots.txt was redirected there"
    assert [one for one in other if CANARY.encode() in one] == [], "and nothing of ours came with it"
    moved = [one for one in shop.elsewhere.requests if b"/landing" in one]
    assert moved, "another port of the own host is in scope"
    assert all(b"Authorization" not in one and b"X-Api-Key" not in one and b"X-Page: yes" in one for one in moved)


async def test_a_buried_task_keeps_its_whole_url_and_is_visited_with_it_when_revived(
    shop: Shop, folder: Folder
) -> None:
    shop.hold.set()
    await folder.call(*RUN)
    await folder.call("dead", "shop", "--why", "broken", "--revive")
    shop.site.requests.clear()
    await folder.call(*RUN)

    assert [one.split(b" ")[1] for one in shop.site.requests if b"robots" not in one] == [
        f"/broken?ticket={CANARY}".encode()
    ]
    assert (await progress_of(folder.path, "shop")).dead == 2
    assert folder.leaks() == []


@pytest.mark.parametrize("broken", ["open_jobs", "open_robots"], ids=["the command", "a worker process"])
async def test_an_unexpected_error_is_reported_without_secrets(shop: Shop, folder: Folder, broken: str) -> None:
    shop.hold.set()
    ended = await folder.call(*RUN, BREAK=broken)

    assert ended.code in (1, 2)
    assert "RuntimeError" in ended.err
    assert folder.leaks() == []
    assert any("RuntimeError: https://a.test/?token=(hidden)" in report for report in folder.reports())


@pytest.mark.parametrize(
    "seed", [f"http://anna:{CANARY}@h.test/", f"ftp://h.test/?token={CANARY}", f'{{"url": {CANARY}']
)
async def test_a_bad_seed_is_complained_about_without_its_secrets(shop: Shop, folder: Folder, seed: str) -> None:
    (folder.path / "seeds.txt").write_text(seed + "\n")
    spider = (folder.path / "shop.py").read_text().replace("seeds=[", "seeds=[] and [")
    (folder.path / "shop.py").write_text(spider.replace("retries=0,", 'retries=0, hosts=["h.test"],'))
    ended = await folder.call(*RUN, "--seeds", "seeds.txt")

    assert ended.code == 2
    assert folder.leaks() == []

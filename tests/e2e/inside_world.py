"""Runs inside a network namespace that owns every address there is, and notes who is dialled.

Started by `own_world.py` with `unshare --net --mount`: nothing in here can reach a real network, and all of it is gone
when this process ends. Two addresses play the open web; every other is a canary. Which is which is decided by that list
of two, not by Trotline's own table, so a hole in the table shows.
"""

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.e2e.world_roads import LINKS, ROBOTS
from tests.e2e.world_zone import LOGIN, PROXY_PORT, PUBLIC_V4, PUBLIC_V6, ZONE

from trotline.testing.dns import DnsServer
from trotline.testing.proxy import ForwardProxy

PUBLIC = (PUBLIC_V4, PUBLIC_V6)
WEB_PORTS = (80, 443)
PORTS = (*WEB_PORTS, 22, 25, 3306, 5432, 6379, 8000, 8080, 8443, 9200, 11211)
RESOLVER = "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n"
"""Real servers answer sooner or never; two seconds are enough for a test."""
SETUP = (
    "ip link set lo up",
    "ip route add local 0.0.0.0/0 dev lo",
    "ip -6 route add local ::/0 dev lo",
    *(f"ip addr add {address}/{128 if ':' in address else 32} dev lo" for address in PUBLIC),
)


def set_up(folder: Path) -> None:
    for line in SETUP:
        subprocess.run(line.split(), check=True)
    resolver = folder / "resolv.conf"
    resolver.write_text(RESOLVER)
    subprocess.run(["mount", "--bind", resolver, "/etc/resolv.conf"], check=True)


class Web:
    """Every port of interest on every address."""

    def __init__(self) -> None:
        self.dialled: list[dict[str, object]] = []

    async def open(self) -> None:
        for port in PORTS:
            listening = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
            await asyncio.start_server(self.serve, sock=listening)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, port = writer.get_extra_info("sockname")[:2]
        address = address.removeprefix("::ffff:") if "." in address else address
        note: dict[str, object] = {"address": address, "port": port, "asked": [], "public": address in PUBLIC}
        note["canary"] = not note["public"] or port not in WEB_PORTS
        self.dialled.append(note)
        try:
            while True:
                await self._answer(reader, writer, note)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, note: dict[str, object]
    ) -> None:
        asked = note["asked"]
        assert isinstance(asked, list)
        if note["port"] in (443, 8443):
            # Enough of the greeting to see for whom it is meant.
            asked.append((await reader.read(4096)).decode("latin-1"))
            raise ConnectionError
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        host = next((line[5:].strip() for line in head if line.lower().startswith("host:")), "")
        asked.append(f"{host}{path}")
        writer.write(reply(host, path) if note["public"] else answer("<h1>secret</h1>"))
        await writer.drain()


def reply(host: str, path: str) -> bytes:
    """What the open web says here: redirects as told, robots files and sitemaps by the name of the host."""
    parts = urlsplit(path)
    to = parse_qs(parts.query).get("to", [""])[0]
    if parts.path == "/go":
        return answer("", "302 Found", f"Location: {to}")
    if parts.path == "/robots.txt" and host in ROBOTS:
        return answer("", "301 Moved", f"Location: http://{ROBOTS[host]}/robots.txt")
    if parts.path == "/robots.txt" and host == "maps.test":
        return answer("User-agent: *\nSitemap: http://10.0.0.3/named-by-robots.xml\nSitemap: /sitemap.xml\n")
    if parts.path == "/robots.txt":
        return answer("", "404 Not Found")
    if parts.path == "/sitemap.xml":
        children = (
            "http://169.254.169.254/child.xml", "http://mixed.test/child.xml", "/moved.xml", "http://[fd00::9]/child.xml",
        )  # fmt: skip
        inner = "".join(f"<sitemap><loc>{child}</loc></sitemap>" for child in children)
        return answer(f"<sitemapindex>{inner}</sitemapindex>".replace(">/", f">http://{host}/"))
    if parts.path == "/moved.xml":
        return answer("", "302 Found", "Location: http://192.168.1.3/moved.xml")
    if parts.path == "/links":
        return answer("".join(f'<a href="{link}">x</a>' for link in LINKS))
    return answer(f"<h1>{host}</h1>")


def answer(body: str, status: str = "200 OK", *headers: str) -> bytes:
    data = body.encode()
    lines = (f"HTTP/1.1 {status}", "Content-Type: text/html", f"Content-Length: {len(data)}", *headers, "", "")
    return "\r\n".join(lines).encode("latin-1") + data


def connects() -> int:
    """How many connections were begun in this namespace, also those that nobody took."""
    names, values = [
        line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Tcp:")
    ]
    return int(values[names.index("ActiveOpens")])


async def main(folder: Path) -> None:
    set_up(folder)
    web = Web()
    await web.open()
    # The operator's own proxy, on loopback. It dials whatever it is told, as proxies in private networks do.
    async with DnsServer(ZONE, port=53) as dns, ForwardProxy(user=LOGIN, password=LOGIN, port=PROXY_PORT) as proxy:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        say({"ready": True})
        while await reader.readline():
            told = [[one.method, one.target] for one in proxy.asked]
            say({"dialled": web.dialled, "connects": connects(), "questions": dns.questions, "proxied": told})


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

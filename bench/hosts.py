"""A thousand hosts at one page a second each: what share of the thousand pages a second does one worker reach?"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.contenders import HERE, WORK
from bench.measure import measure
from bench.nginx import Server

Figures = dict[str, Any]
TEXT = "<p>" + "Lorem ipsum dolor sit amet, consectetur adipiscing elit. " * 40 + "</p>"


def addresses(count: int) -> list[str]:
    """Every address of 127.0.0.0/8 is a host of its own, and so a lane of its own."""
    return [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(count)]


def build(folder: Path, pages: int) -> Path:
    """All hosts have the same pages: each leads to the next three, so that a lane never waits for its links."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(pages):
        links = "".join(f'<a href="/{next_}.html">{next_}</a>' for next_ in range(number + 1, min(number + 4, pages)))
        (folder / f"{number}.html").write_text(f"<!doctype html><h1>Page {number}</h1>{TEXT}{links}")
    return folder


class ManyHosts(Server):
    hosts: Sequence[str] = ()

    def command(self) -> list[str]:
        command = super().command()
        configuration = self.folder / "nginx.conf"
        one = f"listen 127.0.0.1:{self.port} backlog=4096;"
        many = one + "".join(f" listen {host}:{self.port};" for host in self.hosts)
        text = configuration.read_text().replace(one, many).replace("$status $uri", "$status $host$uri")
        configuration.write_text(text)
        return command


def hosts(count: int, pages: int, places: Sequence[str] = (), processes: int = 1) -> Figures:
    """`places` are the options for frontier and sink; without them, files."""
    root = build(WORK / "sites" / "hosts", pages)
    folder = WORK / "runs" / "hosts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = addresses(count)
    ManyHosts.hosts = names
    program = str(Path(sys.executable).with_name("trotline"))
    files = ["--frontier", f"sqlite:{folder / 'frontier.db'}", "--sink", f"sqlite:{folder / 'rows.db'}"]
    command = [program, "run", str(HERE / "trotline_hosts.py"), *(places or files), "--allow-private", "--quiet"]
    command += ["--slots", "128", "--processes", str(processes)]
    with ManyHosts(root, WORK / "server") as running:
        usage = measure(command, folder, {"BENCH_PORT": str(running.port), "BENCH_HOSTS": ",".join(names)})
    moments = running.hits().moments
    # The limits admit `count` pages a second from the first page on; the last second of each host is not counted,
    # because the hosts do not end at the same moment.
    first = moments[0]
    seconds = pages - 2
    reached = len([moment for moment in moments if first + 1 <= moment < first + 1 + seconds])
    return {
        "hosts": count,
        "pages": len(moments),
        "processes": processes,
        "seconds": seconds,
        "rate": reached / seconds,
        "share": reached / (seconds * count),
        "cpu_ms": usage.cpu * 1000 / max(1, len(moments)),
        "cores": usage.cpu / usage.wall,
        "failed": []
        if len(moments) == count * pages and usage.exit_code == 0
        else [f"{len(moments)} pages, exit {usage.exit_code}"],
    }

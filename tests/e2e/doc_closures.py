"""Three large documentation packages, crawled with default settings and compared with what wget finds.

    python -m tests.e2e.doc_closures [--packages FOLDER] [NAME ...]

Minutes long, so it is a command and not a test. Packages that are not installed are downloaded by apt (nothing is
installed) and served by nginx on loopback. The spider has default settings but for its pace: no limit and no trap may
leave anything out. Every URL that only one of both has is printed with what the server says to it.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from tests.e2e.running import rows_of

from trotline.testing.servers import Nginx, need, nginx

PACKAGES = {
    "rust-doc": "usr/share/doc/rust-doc/html",
    "openjdk-17-doc": "usr/share/doc/openjdk-17-jre-headless/api",
    "libstdc++-12-doc": "usr/share/doc/libstdc++-12-doc/libstdc++",
}
"""Package -> where its index.html is. core/all.html of rust-doc has about 18,000 links."""
MOST_SHOWN = 50
SPIDER = """
from trotline import Page, Spider

docs = Spider("docs", pace="1000/s", concurrency=16)


@docs.page(key="url", seeds=["{url}/"])
def page(page: Page):
    if page.headers.get("content-type", "").startswith("text/html"):
        yield {{"url": page.url}}
        yield page.follow()
"""


class Compared(NamedTuple):
    wget: set[str]
    ours: set[str]
    code: int
    summary: str
    seconds: tuple[float, float]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--packages", type=Path, help="where packages are unpacked; kept for the next time")
    arguments.add_argument("names", nargs="*", metavar="NAME", help=f"by default {', '.join(PACKAGES)}")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failures = sum(not _one(name, given.packages or Path(folder)) for name in given.names or PACKAGES)
    return 1 if failures else 0


def _one(name: str, unpacked: Path) -> bool:
    with nginx(_html_of(name, unpacked)) as site, tempfile.TemporaryDirectory() as folder:
        compared = _compare(site, Path(folder))
        print(f"{name}: wget {len(compared.wget):,} pages in {compared.seconds[0]:.0f} s, ", end="")
        print(f"ours {len(compared.ours):,} in {compared.seconds[1]:.0f} s, exit code {compared.code}")
        for line in _differences(compared):
            print("  " + line)
        if compared.code:
            print(compared.summary)
        sys.stdout.flush()
        return compared.code == 0 and compared.wget == compared.ours


def _html_of(name: str, unpacked: Path) -> Path:
    installed, own = Path("/") / PACKAGES[name], unpacked / name / PACKAGES[name]
    if (installed / "index.html").exists():
        return installed
    if not (own / "index.html").exists():
        (unpacked / name).mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", name], cwd=unpacked / name, check=True, capture_output=True)
        [package] = (unpacked / name).glob("*.deb")
        subprocess.run(["dpkg", "-x", package, unpacked / name], check=True)
    return own


def _compare(site: Nginx, folder: Path) -> Compared:
    started = time.monotonic()
    wget = _wget(site.url, folder)
    between = time.monotonic()
    (folder / "docs.py").write_text(SPIDER.format(url=site.url))
    command = [sys.executable, "-m", "trotline.cli", "run", "docs.py", "--allow-private", "--processes", "2"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    ours = {row["url"] for row in rows_of(folder / "docs.db")}
    return Compared(
        wget, ours, ended.returncode, ended.stdout + ended.stderr, (between - started, time.monotonic() - between)
    )


def _wget(url: str, folder: Path) -> set[str]:
    """The pages that wget reaches by links: what the server calls HTML, under the address that answered."""
    command = [
        str(need("wget", "wget")), "--recursive", "--level=inf", "--delete-after", "--no-verbose", "--no-parent",
        "--follow-tags=a", r"--accept-regex=(/|\.html?)([?]|$)", f"{url}/",
    ]  # fmt: skip
    # 8: some links lead to a 404. That is the site's own affair.
    log = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stderr
    return {found for found in re.findall(r" URL:\s*(\S+) \[", log) if not found.endswith("/robots.txt")}


def _differences(compared: Compared) -> Iterator[str]:
    for title, urls in (("only wget", compared.wget - compared.ours), ("only ours", compared.ours - compared.wget)):
        for url in sorted(urls)[:MOST_SHOWN]:
            yield f"{title}: {url}  {_said(url)}"
        if len(urls) > MOST_SHOWN:
            yield f"{title}: {len(urls) - MOST_SHOWN:,} more"


def _said(url: str) -> str:
    try:
        with urlopen(url, timeout=10) as answer:  # noqa: S310 - our own server
            return f"{answer.status} {answer.headers.get('content-type')}, {len(answer.read()):,} bytes"
    except OSError as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(main())

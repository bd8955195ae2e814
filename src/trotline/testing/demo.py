"""`make demo`: open the demo shop, scrape it with the catalog spider of the README, compare the rows with the truth.

Nothing here is staged: the shop is a process of its own, and the spider runs through the command line that you use.
"""

import argparse
import contextlib
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from trotline.testing.shop import DemoShop

SPIDER = Path(__file__).parents[3] / "examples" / "shop.py"
"""The README's catalog, which looks for the shop's address in DEMO_SHOP."""
SHOWN = 5
DIFFERENT = 1
CANNOT_START = 2
INTERRUPTED = 130
_STOP_WITHIN = 10

Rows = dict[str, tuple[str, str]]
"""Title and price by sku."""


class DemoFailed(Exception):
    """What happened, in a line for people."""


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    # Exit normally on SIGTERM, so that the shop is stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return _demo(asked.folder, asked.products)
    except DemoFailed as failed:
        print(f"demo: {failed}", file=sys.stderr)
        return CANNOT_START
    except KeyboardInterrupt:
        print("demo: stopped", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trotline.testing.demo", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("demo-out"), help="where the rows go (default demo-out)")
    parser.add_argument("--products", type=int, default=120, help="how many products the shop has (default 120)")
    return parser


def _demo(folder: Path, products: int) -> int:
    if not SPIDER.is_file():
        raise DemoFailed(f"{SPIDER} is not there: the demo runs in a clone of the repository")
    _clear(folder)
    with open_shop(products) as url:
        print(f"The demo shop is open at {url}: a small site on your own machine, made to be scraped.\n", flush=True)
        code = _scrape(url, folder)
    if code == INTERRUPTED:
        # The run got the Ctrl-C too, and has ended.
        raise KeyboardInterrupt
    if code:
        raise DemoFailed(f"the run ended with exit code {code}; its last lines above say why")
    found, truth = _stored(folder / "shop.db"), truth_of(products)
    show(found)
    return compare(found, truth, f"  rows      {short(folder / 'shop.db')}")


def _clear(folder: Path) -> None:
    """Delete the files of an earlier demo, by name: its rows would prove nothing about this one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("shop.db", "frontier.db"):
        for ending in ("", "-wal", "-shm"):
            (folder / f"{name}{ending}").unlink(missing_ok=True)


@contextlib.contextmanager
def open_shop(products: int) -> Iterator[str]:
    """The shop's address. It gets no Ctrl-C of its own, so that visits in flight can still end well."""
    command = [sys.executable, "-m", "trotline.testing.shop", "--port", "0", "--products", str(products)]
    shop = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)  # noqa: S603
    try:
        assert shop.stdout is not None
        address = re.search(r"http://\S+", shop.stdout.readline())
        if address is None:
            raise DemoFailed("the demo shop did not open; its message is above")
        yield address[0]
    finally:
        stop(shop)


def _scrape(url: str, folder: Path) -> int:
    words = ["run", short(SPIDER), "--allow-private", "--out", short(folder / "shop.db")]
    words += ["--frontier", f"sqlite:{short(folder / 'frontier.db')}"]
    print(f"$ DEMO_SHOP={url} trotline {shlex.join(words)}", flush=True)
    command = [sys.executable, "-m", "trotline.cli", *words]
    run = subprocess.Popen(command, env={**os.environ, "DEMO_SHOP": url})  # noqa: S603
    try:
        return run.wait()
    except KeyboardInterrupt:
        # The run gets the Ctrl-C too, and prints its summary first.
        run.wait(_STOP_WITHIN)
        raise
    finally:
        stop(run)


def stop(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_STOP_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def short(path: Path) -> str:
    """The path as one would type it here."""
    whole = path.resolve()
    return str(whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else whole)


def _stored(path: Path) -> Rows:
    with contextlib.closing(sqlite3.connect(path)) as rows:
        return {sku: (title, price) for sku, title, price in rows.execute("SELECT sku, title, price FROM product")}


def truth_of(products: int) -> Rows:
    """What the shop sells: the same number and seed always give the same shop."""
    return {one.sku: (one.title, one.price) for one in DemoShop(products).truth}


def show(found: Rows) -> None:
    some = sorted(found.items(), key=lambda row: int(row[0][1:]))[:SHOWN]
    wide = max((len(title) for _, (title, _) in some), default=5)
    print(f"\n  {'sku':<6}{'title':<{wide}}  {'price':>8}")
    for sku, (title, price) in some:
        print(f"  {sku:<6}{title:<{wide}}  {price:>8}")
    if len(found) > SHOWN:
        print(f"  ... and {len(found) - SHOWN} more")


def compare(found: Rows, truth: Rows, where: str, more: str = "docs/learn/first-spider.md") -> int:
    missing, strange = truth.keys() - found.keys(), found.keys() - truth.keys()
    wrong = [sku for sku in truth.keys() & found.keys() if truth[sku] != found[sku]]
    print(
        f"\n  {len(truth)} products in the shop, {len(found)} rows: "
        f"{len(missing)} missing, {len(strange)} too many, {len(wrong)} different"
    )
    print(where)
    print(f"  spider    {short(SPIDER)}")
    print(f"  resume    {more}")
    return DIFFERENT if missing or strange or wrong else 0


if __name__ == "__main__":
    sys.exit(main())

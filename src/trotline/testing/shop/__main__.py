"""`python -m trotline.testing.shop`: the demo shop from a terminal."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from trotline.testing.shop import ENTRIES, PASSWORD, USER, DemoShop, Manners

_EXAMPLES = """examples:
  python -m trotline.testing.shop                        120 products on http://127.0.0.1:8010
  python -m trotline.testing.shop --port 0               on a free port, which it prints
  python -m trotline.testing.shop --products 5000        a larger catalog
  python -m trotline.testing.shop --per-second 2         /limited/ answers 429 above 2 requests per second
  python -m trotline.testing.shop --host 127.0.0.1 --host 127.0.0.2    the same shop on two hosts
"""


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    manners = Manners(per_second=asked.per_second, guard_after=asked.guard_after)
    shop = DemoShop(
        asked.products, asked.seed, asked.port, quotes=asked.quotes, hosts=asked.host or ["127.0.0.1"], manners=manners
    )
    try:
        asyncio.run(_serve(shop))
    except OSError as refused:
        print(f"The shop cannot open port {asked.port}: {refused.strerror}.", file=sys.stderr)
        print("  Is another shop running? Try --port 0 for a free port.", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trotline.testing.shop",
        description="A small web shop that exists to be scraped. The same seed always gives the same pages.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=8010, help="port to listen on, 0 for a free one (default 8010)")
    parser.add_argument("--host", action="append", help="address to listen on; may be repeated (default 127.0.0.1)")
    parser.add_argument("--products", type=_count, default=120, help="number of products (default 120)")
    parser.add_argument("--quotes", type=_count, default=45, help="number of quotes (default 45)")
    parser.add_argument("--seed", type=int, default=7, help="decides names, prices and quotes (default 7)")
    parser.add_argument("--per-second", type=_count, default=5, help="what /limited/ allows per client (default 5)")
    parser.add_argument("--guard-after", type=_count, default=20, help="requests before /guarded/ bans (default 20)")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


async def _serve(shop: DemoShop) -> None:
    closing = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, closing.set)
    async with shop:
        print(_welcome(shop), flush=True)
        await closing.wait()
        print(f"Closed after {len(shop.visits)} visits.", flush=True)


def _welcome(shop: DemoShop) -> str:
    lab = "\n".join(f"  {shop.url}/lab/{entry.name:<10} {entry.about}" for entry in ENTRIES)
    return (
        f"The demo shop is open at {' and '.join(shop.urls)}\n"
        f"  {shop.url}/catalog        {len(shop.truth)} products, 12 on a page\n"
        f"  {shop.url}/quotes/        {len(shop.quotes)} quotes, 10 on a page\n"
        f"  {shop.url}/login          name {USER}, password {PASSWORD}\n"
        f"Pages that misbehave, which the home page does not link to:\n{lab}\n"
        "Stop it with Ctrl+C."
    )


if __name__ == "__main__":
    sys.exit(main())

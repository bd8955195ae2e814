"""`python -m trotline.testing.torture`: the torture server from a terminal."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from trotline.testing.torture import TortureServer


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m trotline.testing.torture",
        description="A web server that misbehaves on demand: every path is one fault, and / lists them all.",
    )
    parser.add_argument("--port", type=int, default=8020, help="port to listen on, 0 for a free one (default 8020)")
    parser.add_argument("--host", action="append", help="address to listen on; may be repeated (default 127.0.0.1)")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    asked = parser.parse_args(arguments)
    server = TortureServer(asked.port, hosts=asked.host or ["127.0.0.1"])
    if asked.list:
        print("\n".join(f"{fault.path:<28} {fault.about}" for fault in server.faults))
        return 0
    try:
        asyncio.run(_serve(server))
    except OSError as refused:
        print(f"The torture server cannot open port {asked.port}: {refused.strerror}.", file=sys.stderr)
        print("  Is another one running? Try --port 0 for a free port.", file=sys.stderr)
        return 1
    return 0


async def _serve(server: TortureServer) -> None:
    closing = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, closing.set)
    async with server:
        print(f"The torture server is open at {server.url()} with {len(server.faults)} faults.", flush=True)
        print("Stop it with Ctrl+C.", flush=True)
        await closing.wait()
        print(f"Closed after {len(server.requests)} requests.", flush=True)


if __name__ == "__main__":
    sys.exit(main())

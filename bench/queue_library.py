"""Tasks per second of one program with a `Queue`: with one loop, and with several over the same queue.

    python -m bench.queue_library                              an SQLite file
    python -m bench.queue_library redis://127.0.0.1:6379/0     a server; its databases must be empty

Each task is leased and settled, and no page is fetched: what is left is the cost of the queue.
"""

import asyncio
import sys
import tempfile
import time

from trotline import Queue

LOOPS = (1, 8, 50)
LANES = 1_000


async def rate(frontier: str, name: str, loops: int, tasks: int) -> float:
    async with Queue(name, frontier, pace="1000/s", concurrency=100) as queue:
        await queue.add_urls(f"https://h{number % LANES}.example/{number}" for number in range(tasks))
        await queue.seal()

        async def work() -> None:
            async for task in queue:
                await queue.done(task)

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(loops)))
        took = time.perf_counter() - began
        assert (await queue.stats()).done == tasks
    return tasks / took


async def main(frontier: str, tasks: int) -> None:
    for loops in LOOPS:
        found = await rate(frontier, f"bench{loops}", loops, tasks)
        print(f"{loops:3} loops: {found:7,.0f} tasks/s, {1000 / found:.2f} ms per task")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        given = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:{folder}/queue.db"
        asyncio.run(main(given, int(sys.argv[2]) if len(sys.argv) > 2 else 2_000))

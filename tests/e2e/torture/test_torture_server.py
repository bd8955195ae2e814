"""The torture server itself, and a whole crawl of everything it does."""

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from trotline import App, Limits, Page, Spider, Task
from trotline.testing.torture import Call, TortureServer
from trotline.testing.torture.faults import answer


def test_it_lives_in_a_thread_and_lists_what_it_does() -> None:
    with TortureServer.in_thread() as server:
        with urllib.request.urlopen(server.url()) as index:  # noqa: S310 - our own server
            page = index.read().decode()
        assert [fault.path for fault in server.faults if f'href="{fault.path}"' not in page] == []
        assert [asked.target for asked in server.requests] == ["/"]


def test_a_test_may_add_faults_of_its_own() -> None:
    async def mirror(call: Call) -> None:
        await call.send(answer("/".join(call.rest).encode()))

    with TortureServer.in_thread() as server:
        server.answer("/own", answer(b"said"))
        server.answer("/mirror", mirror)
        for path, expected in (("/own", b"said"), ("/mirror/a/b", b"a/b")):
            with urllib.request.urlopen(server.url(path)) as page:  # noqa: S310 - our own server
                assert page.read() == expected


def test_it_can_be_started_from_a_terminal() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "trotline.testing.torture", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        url = re.search(r"http://[\d.:]+", running.stdout.readline())
        assert url is not None
        with urllib.request.urlopen(f"{url[0]}/body/whole") as page:  # noqa: S310 - our own server
            assert page.status == 200
        running.terminate()
        assert "Closed after 1 requests." in running.stdout.read()
    assert running.returncode == 0


async def test_every_fault_ends_in_done_or_dead_with_a_reason(tmp_path: Path) -> None:
    """All of it in one crawl: nothing raises, nothing hangs, nobody is left on the line."""
    limits = Limits(first_byte=0.5, slow_after=0.5, total=10, connect=2)
    spider = Spider("torture", pace="1000/s", retries=0, robots=False, hosts=["127.0.0.1"], limits=limits)
    async with TortureServer() as server:
        # Who is told 429 waits for as long as the site wants it to: about two hours until it is given up (F19).
        finite = [fault.path for fault in server.faults if not fault.path.startswith(("/retry-after/", "/robots/429"))]

        def seeds() -> Iterator[Task]:
            for path in finite:
                yield good.task(server.url(path), lane=path)

        @spider.page(seeds=seeds)
        def good(page: Page) -> Iterator[dict[str, str]]:
            yield {"url": page.url, "text": page.text[:100]}

        frontier, sink = f"sqlite:{tmp_path / 'frontier.db'}", f"jsonl:{tmp_path / 'rows.jsonl'}"
        async with App(frontier=frontier, sink=sink, allow_private=True) as app:
            job = await app.start(spider)
            await app.work(spider, slots=32)
            books = await app.progress(job)
        await server.quiet()
    assert (books.waiting, books.leased) == (0, 0)
    assert books.done + books.dead == len(finite)
    assert books.dead > 50

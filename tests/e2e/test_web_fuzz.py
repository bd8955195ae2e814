"""A short run of random requests against a real server with a real job (tests/e2e/web_fuzz.py has the long one)."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.e2e.running import call
from tests.e2e.web_server import OPERATE, tokens, web, write_spider

from trotline.testing.shop import DemoShop

ROOT = Path(__file__).parents[2]


@pytest.mark.slow("a request for each of many cases")
async def test_random_requests_find_no_unexpected_error_and_no_answer_that_is_not_described(
    tmp_path: Path, shop: DemoShop
) -> None:
    write_spider(tmp_path, shop.url)
    await call(tmp_path, "run", "shop.py", "--allow-private")
    async with web(tmp_path, "shop.py", *tokens(tmp_path)) as server:
        server.token = OPERATE
        # One that is not finished: it can be steered.
        assert 201 == (await server.post("/api/v1/jobs", {"spider": "shop", "fresh": True})).status
        found = await _fuzz(server.url)
        ended = await server.stop()
    assert "web.error" not in ended.err
    # It asked for what there is, for what there is not, and for nonsense.
    assert found[200] > 50 and found[404] > 10 and found[400] > 8, found


async def _fuzz(url: str) -> Counter[int]:
    """How often it was answered with which status. In a process of its own: pytest would rewrite all of schemathesis,
    and CPython 3.11 must not parse code in two threads at once."""
    words = ("-m", "tests.e2e.web_fuzz", url, "--token", OPERATE, "--cases", "8")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, (out + err).decode()
    statuses: Counter[int] = Counter()
    for line in out.decode().splitlines():
        number, status, *_ = line.split()
        statuses[int(status)] += int(number)
    return statuses

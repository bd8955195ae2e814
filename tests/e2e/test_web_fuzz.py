"""A short run of random requests against a real server with a real job (tests/e2e/web_fuzz.py has the long one)."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.e2e.running import call
from tests.e2e.web_fuzz import fuzz
from tests.e2e.web_server import OPERATE, tokens, web, write_spider

from trotline.testing.shop import DemoShop


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
        found = await asyncio.to_thread(fuzz, server.url, OPERATE, 8)
        ended = await server.stop()
    assert "web.error" not in ended.err
    statuses: Counter[int] = Counter()
    for (_, status), number in found.items():
        statuses[status] += number
    # It asked for what there is, for what there is not, and for nonsense.
    assert statuses[200] > 50 and statuses[404] > 10 and statuses[400] > 8, statuses

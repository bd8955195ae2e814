"""Runs inside the world: fetches URLs as they are, all at once, and tells what became of each, in order of arrival."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Failure
from trotline.model.limits import Limits
from trotline.model.task import Task


async def main(order: dict[str, Any]) -> None:
    limits = Limits(**order.get("limits", {}))
    fetcher = HttpFetcher(
        limits,
        user_agent="test/1",
        spider="s",
        slots=order.get("slots", 64),
        allow=order.get("allow", ()),
        allow_private=order.get("allow_private", False),
    )
    told: dict[str, Any] = {}

    async def fetch(url: str) -> None:
        outcome = await fetcher.fetch(Task(url=url, route="r"))
        if isinstance(outcome, Failure):
            told[url] = {"trouble": outcome.trouble.value, "why": outcome.why}
        else:
            told[url] = {"status": outcome.status, "address": outcome.address, "body": outcome.body.decode()}

    await asyncio.gather(*map(fetch, order["urls"]))
    await fetcher.close()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))

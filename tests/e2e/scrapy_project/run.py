"""Runs spiders in one process, each with a feed of its own.

python -m tests.e2e.scrapy_project.run --out FOLDER [--frontier URL] [--set NAME=JSON] [SPIDER...]
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from scrapy.crawler import CrawlerProcess
from tests.e2e.scrapy_project import spiders


def settings(out: Path, frontier: str, more: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "FEEDS": {str(out / "%(name)s.jsonl"): {"format": "jsonlines"}},
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "INFO",
        "RETRY_PRIORITY_ADJUST": -1,
        "REMOTE_CONTROL_ENABLED": False,
        **more,
    }
    if frontier:
        found |= {"ADDONS": {"trotline.bridges.scrapy.Addon": 500}, "TROTLINE": frontier}
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--frontier", default="")
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    more = {name: json.loads(value) for name, _, value in (pair.partition("=") for pair in given.set)}
    process = CrawlerProcess(settings(given.out, given.frontier, more))
    kinds = {kind.name: kind for kind in vars(spiders).values() if getattr(kind, "name", None)}
    crawlers = [process.create_crawler(kinds[name]) for name in given.names or [kind.name for kind in spiders.ALL]]
    for crawler in crawlers:
        process.crawl(crawler)
    process.start()
    reasons = {crawler.spidercls.name: _reason(crawler) for crawler in crawlers}
    print(json.dumps(reasons))
    return 0 if set(reasons.values()) == {"finished"} else 1


def _reason(crawler: Any) -> str:
    stats = crawler.stats.get_stats() if crawler.stats is not None else {}
    return str(stats.get("finish_reason", "it did not open"))


if __name__ == "__main__":
    sys.exit(main())

"""The worker that guides to Redis queues teach: a sorted set, a request without a session per page, a set per state.

As such guides print it, with what it needs to do this job: the fields of a product, and the links followed once each.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urljoin

import httpx
import redis
from selectolax.parser import HTMLParser

FIELDS = {
    "sku": "[itemprop=sku]",
    "title": "h1.name",
    "brand": ".brand",
    "price": ".price .amount",
    "availability": ".stock",
    "rating": ".rating",
    "reviews": ".count",
    "category": ".category",
    "colour": "dd.colour",
    "material": "dd.material",
    "weight": "dd.weight",
    "description": ".description p",
}


class ScrapingQueue:
    def __init__(self, redis_url: str) -> None:
        self.redis = redis.from_url(redis_url)

    def add_urls(self, urls: list[str], priority: int = 0) -> None:
        pipe = self.redis.pipeline()
        for url in urls:
            added = datetime.now(UTC).isoformat()
            task = json.dumps({"url": url, "priority": priority, "added_at": added, "retries": 0})
            pipe.zadd("scrape:pending", {task: priority})
        pipe.execute()

    def get_task(self) -> dict | None:
        result = self.redis.zpopmin("scrape:pending", count=1)
        if not result:
            return None
        task = json.loads(result[0][0])
        self.redis.sadd("scrape:processing", task["url"])
        return task

    def mark_completed(self, url: str, data: dict) -> None:
        self.redis.srem("scrape:processing", url)
        self.redis.hset("scrape:completed", url, json.dumps(data))

    def unknown(self, urls: list[str]) -> list[str]:
        return [url for url in urls if self.redis.sadd("scrape:seen", url)]


def value(tree: HTMLParser, query: str) -> str | None:
    node = tree.css_first(query)
    return None if node is None else node.text()


def process_url(url: str) -> dict:
    response = httpx.get(url, timeout=30, headers={"User-Agent": "Mozilla/5.0"})
    response.raise_for_status()
    tree = HTMLParser(response.text)
    return {
        "title": tree.css_first("title").text() if tree.css_first("title") else "",
        "body_text": tree.body.text()[:5000] if tree.body else "",
        "links": [a.attributes.get("href", "") for a in tree.css("a[href]")],
        "status": response.status_code,
        "item": {
            "url": url,
            **{name: value(tree, query) for name, query in FIELDS.items()},
            "currency": tree.css_first("[itemprop=currency]").attributes.get("content"),
            "seller": tree.css_first(".seller").attributes.get("data-seller"),
        },
    }


def main() -> None:
    queue = ScrapingQueue(os.environ["BENCH_REDIS"])
    queue.add_urls(queue.unknown([os.environ["BENCH_SEED"]]))
    while (task := queue.get_task()) is not None:
        data = process_url(task["url"])
        queue.mark_completed(task["url"], data)
        queue.add_urls(queue.unknown([urljoin(task["url"], link) for link in data["links"]]))
    with Path(os.environ["BENCH_OUT"]).open("w", encoding="utf-8") as out:
        for data in queue.redis.hgetall("scrape:completed").values():
            out.write(json.dumps(json.loads(data)["item"]) + "\n")


if __name__ == "__main__":
    main()

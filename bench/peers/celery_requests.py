"""Celery with requests: one task per page, one process, Redis as broker, a set of known URLs in Redis.

python celery_requests.py    starts the worker, sends the first page, waits for the last one, stops the worker
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urljoin

import redis
import requests
from celery import Celery
from selectolax.lexbor import LexborHTMLParser

REDIS = os.environ["BENCH_REDIS"]
app = Celery("product", broker=REDIS)
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=16, task_acks_late=True)
store = redis.Redis.from_url(REDIS)
session = requests.Session()

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


def text(tree: LexborHTMLParser, query: str) -> str | None:
    node = tree.css_first(query)
    return None if node is None else node.text()


@app.task(name="fetch")
def fetch(url: str) -> None:
    response = session.get(url, timeout=30)
    response.raise_for_status()
    tree = LexborHTMLParser(response.text)
    item = {"url": url, **{name: text(tree, query) for name, query in FIELDS.items()}}
    item["currency"] = tree.css_first("[itemprop=currency]").attributes.get("content")
    item["seller"] = tree.css_first(".seller").attributes.get("data-seller")
    links = list(dict.fromkeys(urljoin(url, node.attributes.get("href") or "") for node in tree.css("a[href]")))
    pipe = store.pipeline(transaction=False)
    for link in links:
        pipe.sadd("known", link)
    for link, new in zip(links, pipe.execute(), strict=True):
        if new:
            store.incr("sent")
            fetch.delay(link)
    pipe = store.pipeline()
    pipe.rpush("items", json.dumps(item))
    pipe.incr("done")
    pipe.execute()


def main() -> None:
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "celery_requests", "worker", "-P", "prefork", "-c", "1", "-l", "ERROR"],
        cwd=Path(__file__).parent,
    )
    seed = os.environ["BENCH_SEED"]
    store.sadd("known", seed)
    store.incr("sent")
    fetch.delay(seed)
    while int(store.get("done") or 0) < int(store.get("sent") or 0):
        time.sleep(0.2)
    worker.terminate()
    worker.wait()
    with Path(os.environ["BENCH_OUT"]).open("w", encoding="utf-8") as out:
        for line in store.lrange("items", 0, -1):
            out.write(line.decode() + "\n")


if __name__ == "__main__":
    main()

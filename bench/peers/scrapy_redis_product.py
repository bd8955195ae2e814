"""Scrapy with scrapy-redis as its documentation sets it up: queue and duplicate filter in Redis, JSON Lines feed."""

import os

from scrapy_plain import ProductSpider as OrdinarySpider


class ProductSpider(OrdinarySpider):
    name = "product-redis"
    custom_settings = {  # noqa: RUF012 - Scrapy's own spelling
        **OrdinarySpider.custom_settings,
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,
        "REDIS_URL": os.environ["BENCH_REDIS"],
    }

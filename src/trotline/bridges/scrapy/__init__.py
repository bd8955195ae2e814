"""Scrapy projects on our frontier: unmodified spiders, any number of processes."""

from trotline.bridges.scrapy.addon import Addon
from trotline.bridges.scrapy.redis_spider import RedisCrawlSpider, RedisSpider
from trotline.bridges.scrapy.scheduler import Scheduler
from trotline.bridges.scrapy.sink_pipeline import SinkPipeline

__all__ = ["Addon", "RedisCrawlSpider", "RedisSpider", "Scheduler", "SinkPipeline"]

"""The imported filter of scrapy-redis, for the Scrapy bridge."""

from collections.abc import AsyncIterator

from trotline.adapters.redis.scrapy_redis import IMPORTED, ScrapyRedisKeys


async def members(server: str, key: str) -> AsyncIterator[list[bytes]]:
    keys = ScrapyRedisKeys(server, "", key.removesuffix(f":{IMPORTED}"))
    try:
        async for some in keys.members():
            yield some
    finally:
        await keys.close()

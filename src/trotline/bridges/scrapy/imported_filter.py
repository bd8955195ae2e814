"""The duplicate filter of a crawl that began with scrapy-redis: what it has seen is not visited again."""

from array import array
from bisect import bisect_left

from trotline.commands.scrapy_redis_filter import members
from trotline.rules.scrapy_identity import filtered


class ImportedFilter:
    """The fingerprints as sorted numbers: 8 bytes each."""

    def __init__(self, numbers: "array[int]") -> None:
        self._numbers = array("q", sorted(numbers))

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self._numbers, number)
        return place < len(self._numbers) and self._numbers[place] == number

    def __len__(self) -> int:
        return len(self._numbers)


async def read(server: str, key: str) -> ImportedFilter:
    """FrontierError if the server cannot be read."""
    numbers = array("q")
    async for some in members(server, key):
        numbers.extend(filtered(bytes.fromhex(one.decode())) for one in some)
    return ImportedFilter(numbers)

"""The keys of scrapy-redis: its queue is taken over, and its filter copied, while its workers may still run."""

from collections.abc import AsyncIterator

from redis import exceptions

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.server_calls import Server

BATCH = 500
_NO_KEY = "no such key"
_TAKEN = "trotline-import"
_REFUSED = "trotline-refused"
IMPORTED = "imported"


class ScrapyRedisKeys:
    def __init__(self, url: str, queue: str, seen: str) -> None:
        """`queue`: the key of its requests; `seen`: that of its duplicate filter."""
        self._server = Server(connect(url))
        self.queue, self.seen = queue, seen
        self.taken = f"{self.queue}:{_TAKEN}"
        self.again = self.queue.endswith(f":{_REFUSED}")
        """It is the list of what an import has refused: what is refused again goes back to it."""
        self.refused = self.queue if self.again else f"{self.queue}:{_REFUSED}"
        self.imported = f"{self.seen}:{IMPORTED}"

    async def exist(self) -> bool:
        """Has a crawl used these keys? Its filter stays when its queue is empty."""
        return bool(await self._server.ask("EXISTS", self.queue, self.taken, self.seen, self.imported))

    async def take(self) -> bool:
        """Rename the queue: what its workers add from now on is in a new one. False: there is nothing to take.

        What an earlier import has left is taken first."""
        if await self._server.ask("EXISTS", self.taken):
            return True
        return await self._server.plain(self._rename)

    async def _rename(self) -> bool:
        try:
            return bool(await self._server.client.execute_command("RENAMENX", self.queue, self.taken))
        except exceptions.ResponseError as error:
            # A key ends with its last entry: its workers may take that at any time.
            if _NO_KEY not in str(error):
                raise
            return False

    async def copy_filter(self) -> int:
        """Its workers may delete it when they end. The number of its members."""
        if await self._server.ask("EXISTS", self.seen):
            await self._server.ask("COPY", self.seen, self.imported, "REPLACE")
        return int(await self._server.ask("SCARD", self.imported))

    async def entries(self) -> list[bytes]:
        """Some of the requests that were taken; empty: there are no more."""
        return await self._entries_at(self.taken, 0)

    async def _entries_at(self, key: str, place: int) -> list[bytes]:
        name = "LRANGE" if await self._is_list(key) else "ZRANGE"
        return list(await self._server.ask(name, key, place, place + BATCH - 1))

    async def look(self) -> AsyncIterator[list[bytes]]:
        """The requests that an import would take, in batches; nothing is changed. Its workers may take some meanwhile:
        those behind them are missed then."""
        for key in (self.taken, self.queue):
            place = 0
            while found := await self._entries_at(key, place):
                yield found
                place += len(found)

    async def known(self) -> int:
        """The number of members that `copy_filter` would copy."""
        for key in (self.seen, self.imported):
            if await self._server.ask("EXISTS", key):
                return int(await self._server.ask("SCARD", key))
        return 0

    async def done(self, entries: list[bytes], refused: list[bytes]) -> None:
        """They are with the frontier; those that are refused are kept in a list."""
        if refused:
            await self._server.ask("RPUSH", self.refused, *refused)
        if await self._is_list(self.taken):
            # Repeated after a lost reply it would remove others.
            trim = ("LTRIM", self.taken, len(entries), -1)
            await self._server.plain(lambda: self._server.client.execute_command(*trim), again=False)
        else:
            await self._server.ask("ZREM", self.taken, *entries)

    async def members(self) -> AsyncIterator[list[bytes]]:
        """The fingerprints of the imported filter."""
        cursor = 0
        while True:
            cursor, found = await self._server.ask("SSCAN", self.imported, cursor, "COUNT", 1000)
            yield found
            if not int(cursor):
                return

    async def close(self) -> None:
        await self._server.close()

    async def _is_list(self, key: str) -> bool:
        return bool(await self._server.ask("TYPE", key) == b"list")

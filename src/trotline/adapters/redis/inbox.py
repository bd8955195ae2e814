"""The inbox: a plain Redis list that other programs write tasks to. Keys: helpers/inbox.lua.

LPUSH NAME '{"url": "https://shop.example/"}'
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from trotline.adapters.redis.connect import checked, connect
from trotline.adapters.redis.inbox_url import HINT, parse
from trotline.adapters.redis.scripts import Script, script
from trotline.adapters.redis.server_calls import Server
from trotline.errors import FrontierError, SettingsError
from trotline.model.inbox import InboxBatch, InboxStatus, ParkedEntry
from trotline.model.task_json import LARGEST
from trotline.model.time import Moment, Seconds, moment
from trotline.ports.inbox import AT_ONCE, TAKEN_FOR

ENOUGH = 4 * 1024 * 1024
"""Bytes after which one call returns no more entries."""
SHOWN = 2_000
"""Bytes of a parked entry that are read."""


class RedisInbox:
    """Implements the Inbox port."""

    def __init__(self, url: str, *, now: Callable[[], Moment] | None = None) -> None:
        try:
            self.address = parse(url)
        except ValueError as error:
            raise SettingsError(str(error), hint=HINT) from error
        self._client = connect(self.address.server)
        self._server = Server(self._client, now=now)
        self._known = False

    @property
    def name(self) -> str:
        return self.address.name

    @property
    def idle(self) -> Seconds | None:
        return self.address.idle

    @property
    def trusted(self) -> bool:
        return self.address.trusted

    async def take(self) -> InboxBatch | None:
        # After a lost reply a second batch is taken, and the first one goes back when its time is over.
        batch = secrets.token_hex(8)
        words = (batch, AT_ONCE, ENOUGH, LARGEST, self.address.side, TAKEN_FOR)
        wrong, too_large, *entries = await self._run(script("inbox_take"), *words)
        if wrong:
            raise FrontierError(
                f"the inbox {self.name} cannot be read: the key {wrong.decode(errors='replace')}",
                hint="An inbox is a list: name one that only producers of tasks write to, with LPUSH.",
            )
        return InboxBatch(batch, tuple(entries), int(too_large)) if entries or int(too_large) else None

    async def keep(self, batch: InboxBatch) -> bool:
        return bool(await self._run(script("inbox_keep"), batch.id))

    async def done(self, batch: InboxBatch, parked: Mapping[int, str]) -> bool:
        words = [word for place, why in parked.items() for word in (place, why.encode(errors="replace"))]
        return bool(await self._run(script("inbox_done"), batch.id, *words))

    async def give_back(self, batch: InboxBatch) -> None:
        await self._run(script("inbox_give_back"), batch.id, self.address.side)

    async def status(self) -> InboxStatus:
        await self._ready()
        kind = await self._server.ask("TYPE", self.name)
        if kind not in (b"none", b"list"):
            raise FrontierError(
                f"the inbox {self.name} cannot be read: the key is a {kind.decode()}",
                hint="An inbox is a list: name one that only producers of tasks write to, with LPUSH.",
            )
        last = await self._server.ask("XREVRANGE", self._key("parked"), "+", "-", "COUNT", 1)
        return InboxStatus(
            name=self.name,
            waiting=int(await self._server.ask("LLEN", self.name)),
            batches=int(await self._server.ask("ZCARD", self._key("batches"))),
            parked=int(await self._server.ask("XLEN", self._key("parked"))),
            example=_parked(*last[0]) if last else None,
            deletes_parked=f"redis-cli DEL '{self._key('parked')}'",
        )

    async def parked(self, limit: int = 100) -> list[ParkedEntry]:
        await self._ready()
        found = await self._server.ask("XRANGE", self._key("parked"), "-", "+", "COUNT", limit)
        return [_parked(name, fields) for name, fields in found]

    async def requeue(self) -> int:
        # No more than there are now: what is parked again meanwhile waits for a person.
        left = (await self.status()).parked
        moved = 0
        while moved < left:
            some = int(await self._run(script("inbox_requeue"), min(AT_ONCE, left - moved), self.address.side))
            if not some:
                break
            moved += some
        return moved

    async def close(self) -> None:
        await self._server.close()

    def _key(self, what: str) -> str:
        return f"{{{self.name}}}:{what}"

    async def _ready(self) -> None:
        """A check of the server's version and configuration, once."""
        if not self._known:
            await checked(self._client)
            self._known = True

    async def _run(self, code: Script, *words: Any) -> Any:
        await self._ready()
        return await self._server.run(code, self.name, *words)


def _parked(name: bytes, fields: dict[bytes, bytes]) -> ParkedEntry:
    entry = fields.get(b"entry", b"")
    return ParkedEntry(
        id=name.decode(),
        at=moment(name.decode().partition("-")[0], 1000),
        why=fields.get(b"why", b"reason unknown").decode(errors="replace"),
        entry=entry[:SHOWN],
        size=len(entry),
    )

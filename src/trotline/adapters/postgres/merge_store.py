"""The things of a merge, in the sink's PostgreSQL schema."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

from trotline.adapters.postgres import merge_statements as sql
from trotline.adapters.postgres import migrate
from trotline.adapters.postgres.errors import plain_errors
from trotline.adapters.postgres.export_reader import no_tables
from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.sink_url import Address, parse
from trotline.errors import MergeRaced
from trotline.model.merge import (
    Identity,
    Link,
    MergeChange,
    MergeTotals,
    Review,
    ReviewDecision,
    Source,
    SourceView,
    Thing,
    ThingView,
    source_id,
    thing_id,
)
from trotline.model.time import Seconds

_WITHIN: Seconds = 600.0
"""Of one statement: a step changes tens of thousands of rows."""


class PostgresMergeStore:
    """M1 to M7 (`ports.merge_store`). The tables are those of the sink's migrations."""

    def __init__(self, url: str | Address) -> None:
        self._address = parse(url) if isinstance(url, str) else url
        self._connections = Connections(self._address, "trotline merge")
        self._ready = False

    async def open(self) -> None:
        with plain_errors(self._address, "merge the rows of"):
            if not await self._there():
                raise no_tables(self._address)

    async def version(self) -> int:
        found = await self._fetch("SELECT version FROM {s}.merge_state")
        return int(found[0][0]) if found else 0

    async def rule(self) -> int:
        found = await self._fetch("SELECT rule FROM {s}.merge_state")
        return int(found[0][0]) if found else 0

    async def changed(self, rule: int, kinds: Sequence[str], after: Identity, limit: int) -> list[Source]:
        found = await self._fetch(sql.CHANGED, rule, *after, list(kinds), limit)
        return [Source(source_id(*row[:3]), *row) for row in found]

    async def gone(self, limit: int) -> list[int]:
        return [one for (one,) in await self._fetch(sql.GONE, limit)]

    async def sources(self, ids: Collection[int]) -> list[Source]:
        return [Source(*row) for row in await self._fetch(sql.SOURCES, list(ids))]

    async def keys(self, ids: Collection[int]) -> dict[int, list[int]]:
        return dict(await self._fetch(sql.KEYS, list(ids)))

    async def count(self, keys: Collection[int]) -> dict[int, int]:
        return dict(await self._fetch(sql.COUNT, list(keys)))

    async def members(self, keys: Collection[int]) -> dict[int, list[int]]:
        return _grouped(await self._fetch(sql.MEMBERS, list(keys)))

    async def links(self, ids: Collection[int]) -> list[Link]:
        return [Link(*row) for row in await self._fetch(sql.LINKS, list(ids))]

    async def decisions(self) -> list[ReviewDecision]:
        return [ReviewDecision(*row) for row in await self._fetch(sql.DECISIONS)]

    async def apply(self, change: MergeChange) -> None:
        with plain_errors(self._address, "merge the rows of"):
            async with self._connections.transaction(within=_WITHIN, statements=10) as connection:
                if await connection.fetchval(self._of(sql.NEXT_VERSION), change.version, change.rule) is None:
                    raise MergeRaced("another merge has changed the things meanwhile", hint="It is computed again.")
                await self._apply(connection, change)

    async def decide(self, decisions: Sequence[ReviewDecision]) -> None:
        if not decisions:
            return
        concerned = sorted({one for decision in decisions for one in decision[:2]})
        with plain_errors(self._address, "merge the rows of"):
            async with self._connections.transaction() as connection:
                await connection.fetchval(self._of(sql.NEXT_VERSION), None, None)
                await connection.execute(self._of(sql.PUT_DECISIONS), *zip(*sorted(set(decisions)), strict=True))
                await connection.execute(self._of(sql.TOUCH), concerned)

    async def thing(self, name: str) -> ThingView | None:
        found = await self._fetch(sql.THING, name)
        if not found:
            return None
        rows = await self._fetch(sql.VIEWS + " WHERE m.thing = $1 ORDER BY m.site, m.key", name)
        [[_, kind, data, provenance]] = found
        return ThingView(id=name, kind=kind, data=data, provenance=provenance, sources=tuple(map(_view, rows)))

    async def review(self, limit: int) -> list[Review]:
        pairs = await self._fetch(sql.REVIEW, limit)
        ids = list({one for a, b, _ in pairs for one in (a, b)})
        views = {row[0]: _view(row) for row in await self._fetch(sql.VIEWS + " WHERE m.id = ANY ($1::bigint[])", ids)}
        return [Review(a=views[a], b=views[b], score=score) for a, b, score in pairs]

    async def totals(self) -> MergeTotals:
        found = await self._fetch(sql.TOTALS)
        if not found:
            return MergeTotals()
        sources, things, merged, review = found[0]
        return MergeTotals(sources=sources, things=things, merged=merged, review=review)

    async def finish(self) -> None:
        """Nothing to do: the view `merged` shows what is there."""

    async def close(self) -> None:
        await self._connections.close()

    def _of(self, question: str) -> str:
        return question.replace("{s}", self._address.quoted)

    async def _there(self) -> bool:
        if not self._ready:
            self._ready = await migrate.has_tables(self._connections, self._address)
        return self._ready

    async def _fetch(self, question: str, *arguments: Any) -> list[Any]:
        """Reads only; nothing where there are no tables."""
        with plain_errors(self._address, "merge the rows of"):
            if not await self._there():
                return []
            async with self._connections.transaction(within=_WITHIN) as connection:
                found: list[Any] = await connection.fetch(self._of(question), *arguments)
        return found

    async def _apply(self, connection: Connection, change: MergeChange) -> None:
        thing_of = {one: thing.id for thing in change.things for one in thing.sources}
        thing_of.update((source.id, thing_id(source.id)) for source in change.alone)
        await self._forget(connection, change, thing_of)
        await self._put_sources(connection, change, thing_of)
        if moved := [(one, thing) for one, thing in thing_of.items() if one not in change.keys]:
            await connection.execute(self._of(sql.MOVE_SOURCES), *zip(*moved, strict=True))
        if change.sources:
            await connection.execute(self._of(sql.PUT_KEYS), list(change.keys))
        if change.links:
            await connection.execute(self._of(sql.PUT_LINKS), *zip(*change.links, strict=True))
        if change.things:
            await connection.execute(self._of(sql.PUT_THINGS), *zip(*map(_thing_row, change.things), strict=True))
        if change.alone:
            await connection.execute(self._of(sql.PUT_ALONE), [source.id for source in change.alone])

    async def _forget(self, connection: Connection, change: MergeChange, concerned: Iterable[int]) -> None:
        """What is written anew, or is gone."""
        new = {source.id for source in change.sources if not source.merged}
        if stored := [*change.gone, *(one for one in concerned if one not in new)]:
            await connection.execute(self._of(sql.FORGET_THINGS), stored)
        if replaced := [*change.gone, *(source.id for source in change.sources if source.merged)]:
            await connection.execute(self._of(sql.FORGET_KEYS), replaced)
            await connection.execute(self._of(sql.FORGET_LINKS), replaced)
            await connection.execute(self._of(sql.FORGET_SOURCES), replaced)

    async def _put_sources(self, connection: Connection, change: MergeChange, thing_of: Mapping[int, str]) -> None:
        """By COPY: an array of each column costs this process twice as much."""
        lines = [
            f"{one},{quoted(site)},{quoted(kind)},{quoted(key)},{seen_at!r},{changes},{change.rule},{thing_of[one]},"
            f'"{{{",".join(map(str, change.keys[one]))}}}"\n'
            for one, site, kind, key, _, seen_at, _, changes, *_ in change.sources
        ]
        await connection.copy_to_table(
            "merge_sources",
            source=BytesIO("".join(lines).encode()),
            columns=("id", "site", "kind", "key", "seen_at", "changes", "rule", "thing", "keys"),
            schema_name=self._address.schema,
            format="csv",
        )


def quoted(text: str) -> str:
    """As a value of CSV."""
    return '"' + text.replace('"', '""') + '"'


def _grouped(pairs: Sequence[Any]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for one, other in pairs:
        groups.setdefault(one, []).append(other)
    return groups


def _view(row: Any) -> SourceView:
    number, site, key, url, thing, data = row
    return SourceView(id=number, site=site, key=key, url=url, thing=thing, data=data)


def _thing_row(thing: Thing) -> tuple[Any, ...]:
    return (
        thing.id,
        thing.kind,
        thing.data,
        thing.provenance,
        len(thing.sources),
        # A site's name has no line break.
        "\n".join(thing.sites),
        thing.first_seen_at,
        thing.seen_at,
    )

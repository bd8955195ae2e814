"""Stores the order of the fields of records, for exports as tables: jsonb does not keep it."""

from collections.abc import Sequence

from trotline.adapters.postgres import sink_statements
from trotline.adapters.postgres.migrate import take_turns
from trotline.adapters.postgres.pool import Connections
from trotline.adapters.postgres.sink_url import Address
from trotline.model.record import Record
from trotline.model.record_row import REPLACEMENT, whole

_MOST_OF_A_KIND = 200
_LONGEST_NAME = 100
_MOST_SHAPES = 4096


class Fields:
    def __init__(self, connections: Connections, address: Address) -> None:
        self._connections = connections
        self._address = address
        self._shapes: set[tuple[str, ...]] = set()

    async def remember(self, batch: Sequence[Record]) -> None:
        """Rarely is anything new. In a transaction of its own, before the records: two writers with the same names in
        another order would block each other until the end of their batches."""
        shapes = {(record.kind, *record.data): None for record in batch}
        new = [shape for shape in shapes if shape not in self._shapes]
        if not new:
            return
        pairs = [(_clean(kind), _clean(name)) for kind, *names in new for name in names[:_MOST_OF_A_KIND]]
        pairs = [(kind, name) for kind, name in pairs if len(kind) <= _LONGEST_NAME and len(name) <= _LONGEST_NAME]
        async with self._connections.transaction() as connection:
            await take_turns(connection, self._address, "fields")
            await connection.execute(
                sink_statements.remember_fields(self._address.quoted),
                [kind for kind, _ in pairs],
                [name for _, name in pairs],
                _MOST_OF_A_KIND,
            )
        if len(self._shapes) > _MOST_SHAPES:
            self._shapes.clear()
        self._shapes.update(new)


def _clean(text: object) -> str:
    return whole(str(text)).replace("\0", REPLACEMENT)

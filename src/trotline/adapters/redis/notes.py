"""Notes of a job (N1 to N4 of ports/console.py). A job in several shards has all of them in the first.

P notes   hash   name -> version, the call that wrote it, data (write_note.lua)
"""

from collections.abc import Sequence

from trotline.adapters.redis.lua_layouts import NOTE
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.shard import Shard
from trotline.model.note import Note

_AT_ONCE = 50
"""Notes per call: 3 MiB at most."""


async def read_notes(shard: Shard, names: Sequence[str]) -> list[Note | None]:
    found: list[Note | None] = []
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        found += map(_opened, await shard.server.ask("HMGET", f"{shard.prefix}notes", *some))
    return found


async def write_note(shard: Shard, name: str, data: bytes, version: int) -> bool:
    # By the call's name a repeat after a lost reply is told from another writer with the same data.
    call = shard.server.call_name()
    return bool(await shard.server.run(script("write_note"), shard.key, name, data, version, call))


def _opened(packed: bytes | None) -> Note | None:
    """None also for what another program wrote over it: the next writer replaces that."""
    if packed is None or len(packed) < NOTE.size:
        return None
    version, size = NOTE.unpack_from(packed)
    if not version >= 1 or len(packed) < NOTE.size + size:
        return None
    return Note(packed[NOTE.size + size :], int(version))

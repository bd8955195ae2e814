"""The scripts of every page as functions of the server (docs/decisions/158).

They are loaded when one is missing: at first, after a restart without persistence, or when there were too many of them.
Where the server has no functions, does not let this user load them, or is out of memory, they are run as scripts.
"""

from typing import Any

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster

from trotline.adapters.redis.flat_pairs import pairs
from trotline.adapters.redis.scripts import LIBRARIES, Script

MOST_LIBRARIES = 30
"""Of all versions of Trotline on a server; beyond it the others are deleted. A client that needs one loads it again."""
_LOADS = 20
"""A client that has to load libraries more often than this goes on without them: they are deleted again and again."""
_MISSING = "function not found"
_REFUSED = "'fcall'"
"""In the errors of a server that does not know the command, and of one that does not allow it."""


class Functions:
    """What one client may do with the functions of its server."""

    def __init__(self, client: Redis | RedisCluster) -> None:
        self._client: Any = client
        self._loads = _LOADS
        """Left."""

    @property
    def usable(self) -> bool:
        return self._loads > 0

    async def mend(self, script: Script, error: exceptions.ResponseError) -> bool:
        """After an error of a call: False if it is one of the script itself. Otherwise the call did nothing, and may be
        repeated as a function if they are still usable, or else as a script."""
        said = str(error).lower()
        if _REFUSED in said:
            self._loads = 0
        elif _MISSING in said:
            await self._load(script)
        else:
            return False
        return True

    async def _load(self, script: Script) -> None:
        client = self._client
        self._loads -= 1
        try:
            for node in client.get_primaries() if isinstance(client, RedisCluster) else [client]:
                await node.execute_command("FUNCTION", "LOAD", "REPLACE", script.library)
                await self._tidy(node, script)
        except exceptions.ResponseError:
            # No permission, or no memory.
            self._loads = 0

    async def _tidy(self, node: Any, script: Script) -> None:
        libraries = await node.execute_command("FUNCTION", "LIST", "LIBRARYNAME", f"{LIBRARIES}*")
        if len(libraries) <= MOST_LIBRARIES:
            return
        for library in libraries:
            name = dict(pairs(library))[b"library_name"].decode()
            if not script.function.startswith(name):
                await node.execute_command("FUNCTION", "DELETE", name)

"""Calls to SQS: the client is opened when it is needed, and every call is counted, as each one is paid for."""

import asyncio
import contextlib
from collections import Counter
from functools import lru_cache
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from botocore.loaders import Loader, create_loader

from trotline.adapters.sqs.broker_url import Address
from trotline.adapters.sqs.errors import LIBRARY, explained, is_refused
from trotline.model.secret import Secret
from trotline.model.time import Seconds

CONNECT: Seconds = 5.0
ANSWER: Seconds = 10.0
BATCH = 10
"""Messages of one call: the limit of SQS."""
UNIT = 64 * 1024
"""Bytes of a call that are paid for as one; more are paid for as several."""


@lru_cache
def _loader() -> Loader:
    """The descriptions of the service, read once per process: a tenth of a second."""
    return create_loader()


class Api:
    def __init__(self, address: Address) -> None:
        self.address = address
        self.calls: Counter[str] = Counter()
        """By verb."""
        self.units = 0
        """What is paid for."""
        self._client: Any = None
        self._credentials: dict[str, Secret] | None = None
        """None: not read yet."""
        self._open = contextlib.AsyncExitStack()
        self._opening = asyncio.Lock()

    async def call(
        self, doing: str, verb: str, size: int = 0, within: Seconds = ANSWER, **words: Any
    ) -> dict[str, Any]:
        """Raises FrontierError. `size`: bytes of the messages that are sent."""
        client = None
        try:
            client = await self._opened()
            self.calls[verb] += 1
            self.units += max(1, -(-size // UNIT))
            async with asyncio.timeout(within):
                answer: dict[str, Any] = await getattr(client, verb)(**words)
                return answer
        except LIBRARY as error:
            if is_refused(error):
                await self._reopen(client)
            raise explained(error, self.address, doing) from error

    def received(self, size: int) -> None:
        """Bytes of an answer: its call is one unit already."""
        self.units += max(1, -(-size // UNIT)) - 1

    async def _opened(self) -> Any:
        async with self._opening:
            if self._client is None:
                if self._credentials is None:
                    self._credentials = self.address.credentials
                session = AioSession()
                session.register_component("data_loader", _loader())
                opening = session.create_client(
                    "sqs",
                    region_name=self.address.region,
                    endpoint_url=self.address.endpoint or None,
                    config=AioConfig(
                        connect_timeout=CONNECT,
                        read_timeout=ANSWER,
                        max_pool_connections=20,
                        # The pump repeats what fails; here only what a single lost connection spoils.
                        retries={"mode": "standard", "total_max_attempts": 2},
                    ),
                    **{name: secret.current() for name, secret in self._credentials.items()},
                )
                self._client = await self._open.enter_async_context(opening)
            return self._client

    async def _reopen(self, refused: Any) -> None:
        """The next call opens a client with the credentials as they are then: keys are rotated while we run."""
        async with self._opening:
            if self._client is refused:
                await self.close()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await self._open.aclose()

"""The queues of a job at SQS: their names, and making them.

PREFIX-JOB-TAG-SHELF   a shelf     PREFIX-JOB-TAG-dead   messages that could not be read, with the attribute `reason`
"""

import asyncio
import hashlib
import json
import logging
import re
from typing import Any

from trotline.adapters.sqs import RETENTION
from trotline.adapters.sqs.api import Api
from trotline.adapters.sqs.errors import QueueGone
from trotline.errors import FrontierError
from trotline.model.job import Job

DEAD = "dead"
MOST_RECEIVED = 1000
"""The highest that SQS takes: a client that dies counts one, and a message that was received as often is put aside."""
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_JOB = 24
_PAGE = 1000
_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)

_log = logging.getLogger(__name__)


def job_prefix(prefix: str, job: Job) -> str:
    """Unique among all jobs of all books that share a prefix: ids are not. With the name of a shelf at most 80
    characters, as SQS demands."""
    tag = hashlib.blake2b(f"{job.id} {job.started_at!r}".encode(), digest_size=7).hexdigest()
    return f"{prefix}-{_FOREIGN.sub('_', job.id)[:_LONGEST_JOB]}-{tag}-"


class Queues:
    """Addresses of queues by shelf. A queue is made by the first client that needs it."""

    def __init__(self, api: Api, prefix: str) -> None:
        self._api = api
        self._prefix = prefix
        self._urls: dict[str, str] = {}
        self._making = asyncio.Lock()
        self._dead_arn = ""

    def name(self, shelf: str) -> str:
        return self._prefix + shelf.replace(".", "-")

    async def url(self, shelf: str) -> str:
        if (known := self._urls.get(shelf)) is not None:
            return known
        async with self._making:
            if shelf not in self._urls:
                self._urls[shelf] = await self._make(shelf)
            return self._urls[shelf]

    def forget(self, shelf: str) -> None:
        """It was not there; the next call makes it."""
        self._urls.pop(shelf, None)
        self._dead_arn = ""

    async def length(self, shelf: str) -> int:
        """Messages that wait or are held by a client; 0 if there is no such queue."""
        try:
            url = self._urls.get(shelf) or await self._look_up(shelf)
            found = await self._api.call(
                "counting messages", "get_queue_attributes", QueueUrl=url, AttributeNames=list(_COUNTS)
            )
        except QueueGone:
            return 0
        return sum(int(found.get("Attributes", {}).get(name, 0)) for name in _COUNTS)

    async def delete_all(self) -> None:
        """Also those that other clients made."""
        more: dict[str, Any] = {}
        urls: list[str] = []
        while True:
            page = await self._api.call(
                "listing queues", "list_queues", QueueNamePrefix=self._prefix, MaxResults=_PAGE, **more
            )
            urls += page.get("QueueUrls", [])
            if not page.get("NextToken"):
                break
            more = {"NextToken": page["NextToken"]}
        for url in urls:
            try:
                await self._api.call("deleting a queue", "delete_queue", QueueUrl=url)
            except QueueGone:
                continue
        self._urls.clear()
        self._dead_arn = ""

    async def _make(self, shelf: str) -> str:
        attributes = {"MessageRetentionPeriod": str(RETENTION)}
        if shelf != DEAD:
            policy = {"deadLetterTargetArn": await self._arn_of_dead(), "maxReceiveCount": str(MOST_RECEIVED)}
            attributes["RedrivePolicy"] = json.dumps(policy)
        try:
            made = await self._api.call(
                "making a queue", "create_queue", QueueName=self.name(shelf), Attributes=attributes
            )
            return str(made["QueueUrl"])
        except FrontierError as error:
            if "QueueNameExists" not in error.what and "QueueAlreadyExists" not in error.what:
                raise
        url = await self._look_up(shelf)
        _log.warning(
            "sqs.changed_queue %s was changed by another program: it keeps messages for less than %d days, or puts them"
            " aside after fewer than %d receives. Its tasks may be lost.",
            self.name(shelf), RETENTION // 86_400, MOST_RECEIVED,
        )  # fmt: skip
        return url

    async def _arn_of_dead(self) -> str:
        if not self._dead_arn:
            if DEAD not in self._urls:
                self._urls[DEAD] = await self._make(DEAD)
            found = await self._api.call(
                "looking up a queue", "get_queue_attributes", QueueUrl=self._urls[DEAD], AttributeNames=["QueueArn"]
            )
            self._dead_arn = str(found["Attributes"]["QueueArn"])
        return self._dead_arn

    async def _look_up(self, shelf: str) -> str:
        found = await self._api.call("looking up a queue", "get_queue_url", QueueName=self.name(shelf))
        self._urls[shelf] = str(found["QueueUrl"])
        return self._urls[shelf]

"""Can this SQS be used? And what an operator should know about it."""

import asyncio
import secrets

from trotline.adapters.sqs.api import Api
from trotline.adapters.sqs.broker_url import address_of
from trotline.adapters.sqs.errors import QueueGone
from trotline.errors import FrontierError
from trotline.ports.backend import Notice

_USABLE_WITHIN = 10
"""Seconds: AWS says that a new queue can be used after one."""
_WAIT = 5


async def notices(url: str) -> list[Notice]:
    """Makes a queue, sends itself a message and deletes the queue; raises FrontierError if that fails."""
    address = address_of(url)
    api = Api(address)
    try:
        made = await api.call(
            "checking it", "create_queue", QueueName=f"{address.prefix}-doctor-{secrets.token_hex(8)}"
        )
        try:
            await _echo(api, str(made["QueueUrl"]))
        finally:
            await api.call("checking it", "delete_queue", QueueUrl=made["QueueUrl"])
    finally:
        await api.close()
    return []


async def _echo(api: Api, queue: str) -> None:
    for left in reversed(range(_USABLE_WITHIN)):
        try:
            await api.call("checking it", "send_message", QueueUrl=queue, MessageBody="{}")
            break
        except QueueGone:
            if not left:
                raise
            await asyncio.sleep(1)
    answer = await api.call("checking it", "receive_message", QueueUrl=queue, WaitTimeSeconds=_WAIT)
    if not answer.get("Messages"):
        raise FrontierError(f"{api.address.place} did not deliver a message", hint="See the server's log.")

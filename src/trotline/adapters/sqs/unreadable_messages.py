"""Messages that cannot be read go to a second queue, whole: what was cut could not be repaired or requeued."""

from typing import Any

from trotline.adapters.sqs.api import Api
from trotline.adapters.sqs.message_bodies import LARGEST, printable

NO_ROOM = "reason unknown: a message of this size has no room for it, so it is in the log"
_NAME, _TYPE = "reason", "String"
_LONGEST_REASON = 500
_SHORTEST_REASON = 20
"""Bytes; less says nothing."""


async def put_aside(api: Api, doing: str, queue: str, text: str, why: str) -> bool:
    """Send it with its reason, or with as much of that as there is room for: attributes count towards the size of a
    message. False if the queue takes no message of this size."""
    size = len(text.encode())
    reason = printable(why)[:_LONGEST_REASON]
    room = LARGEST - size - len(_NAME) - len(_TYPE)
    if room < len(reason.encode()):
        # AWS takes more than other servers by now, and queues may be set to less.
        largest = await _largest(api, queue)
        if size > largest:
            return False
        room += largest - LARGEST
    words: dict[str, Any] = {"QueueUrl": queue, "MessageBody": text}
    if kept := _first_bytes(reason, room):
        words["MessageAttributes"] = {_NAME: {"DataType": _TYPE, "StringValue": kept}}
    await api.call(doing, "send_message", size=size, **words)
    return True


def reason_of(message: dict[str, Any], size: int) -> str:
    """The reason of a message that was put aside."""
    missing = NO_ROOM if size > LARGEST - 2 * _LONGEST_REASON else "reason unknown"
    return str(message.get("MessageAttributes", {}).get(_NAME, {}).get("StringValue", missing))


def _first_bytes(reason: str, room: int) -> str:
    sent = reason.encode()
    if len(sent) <= room:
        return reason
    return sent[:room].decode(errors="ignore") if room >= _SHORTEST_REASON else ""


async def _largest(api: Api, queue: str) -> int:
    name = "MaximumMessageSize"
    found = await api.call("looking up a queue", "get_queue_attributes", QueueUrl=queue, AttributeNames=[name])
    return int(found.get("Attributes", {}).get(name, LARGEST))

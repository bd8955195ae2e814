"""Can this RabbitMQ be used? And what an operator should know about it."""

import secrets

from aiormq import spec
from aiormq.abc import AbstractChannel

from trotline.adapters.amqp.broker_url import address_of
from trotline.adapters.amqp.connection import Line
from trotline.errors import FrontierError
from trotline.ports.backend import Notice


async def notices(url: str) -> list[Notice]:
    """Makes a queue, sends itself a message and deletes the queue; raises FrontierError if that fails."""
    address = address_of(url)
    line = Line(address, "doctor", confirms=True)
    name = f"trotline.doctor.{secrets.token_hex(8)}"

    async def check(channel: AbstractChannel) -> None:
        await channel.queue_declare(name, durable=True, arguments={"x-queue-type": "quorum"})
        try:
            await channel.basic_publish(b"{}", routing_key=name, mandatory=True)
            message = await channel.basic_get(name)
            if not isinstance(message.delivery, spec.Basic.GetOk):
                raise FrontierError(f"{address.place} did not deliver a message", hint="See the server's log.")
        finally:
            await channel.queue_delete(name)

    try:
        await line.call("checking it", check)
    finally:
        await line.close()
    return []

"""Turns errors of RabbitMQ into FrontierErrors with a hint."""

import asyncio
import ssl

from aiormq import exceptions

from trotline.adapters.amqp.broker_url import Address
from trotline.errors import FrontierError, FrontierUnreachable

LIBRARY = (exceptions.AMQPError, OSError, asyncio.TimeoutError, EOFError, RuntimeError)
"""What the client library raises. A RuntimeError: its connection was closed while it was in use."""


def explained(error: BaseException, address: Address, doing: str) -> FrontierError:
    """`doing`: what was tried, for messages."""
    place, text = address.place, _text(error)
    if isinstance(error, FrontierError):
        return error
    if isinstance(error, exceptions.ProbableAuthenticationError | exceptions.AuthenticationError) or (
        "ACCESS_REFUSED" in text and "Login" in text
    ):
        return FrontierError(
            f"{place} refused the login of user {address.user}",
            hint="Check user and password in the URL; the user guest may only connect from the server's own machine.",
        )
    # The library only says which frame it expected: the server closed instead of opening the virtual host.
    if isinstance(error, exceptions.ConnectionNotAllowed) or "NOT_ALLOWED" in text or "Connection.OpenOk" in text:
        return FrontierError(
            f"{place} has no virtual host {address.vhost!r}, or user {address.user} may not use it",
            hint="Make it: rabbitmqctl add_vhost NAME; rabbitmqctl set_permissions -p NAME USER '.*' '.*' '.*'",
        )
    if isinstance(error, exceptions.ChannelAccessRefused):
        return FrontierError(
            f"user {address.user} has not all permissions at {place}: {text}",
            hint="Give them: rabbitmqctl set_permissions -p VHOST USER '^trotline[.].*' '^trotline[.].*|amq[.]default'"
            " '^trotline[.].*'",
        )
    if isinstance(error, exceptions.ChannelPreconditionFailed):
        return FrontierError(
            f"a queue of this job at {place} has other properties than Trotline gives it: {text}",
            hint="Another program, a policy or another version of Trotline made it. Delete it if it is empty.",
        )
    if isinstance(error, ssl.SSLError):
        return FrontierUnreachable(
            f"{place}: TLS handshake failed: {text}",
            hint="Does the port use TLS? If not, use amqp://. To trust a certificate: amqps://...?ca=FILE&books=...",
        )
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return FrontierUnreachable(
            f"{place} did not answer in time ({doing})",
            hint="It also stops publishers when its memory or its disk is short: see rabbitmqctl status (alarms).",
        )
    if isinstance(error, exceptions.ProtocolSyntaxError):
        return FrontierUnreachable(
            f"{place} sent what is not AMQP 0-9-1 ({doing}): {text}",
            hint="Is RabbitMQ at this port, and nothing in between that changes what it sends?",
        )
    return FrontierUnreachable(
        f"cannot reach {place} ({doing}): {text}", hint="Is RabbitMQ running, and is the URL right?"
    )


def _text(error: BaseException) -> str:
    said = str(error.args[1]) if len(error.args) > 1 and isinstance(error.args[1], str) else str(error)
    return (said.splitlines() or [type(error).__name__])[0][:200] or type(error).__name__

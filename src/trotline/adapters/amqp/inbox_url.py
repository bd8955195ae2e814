"""The URL of an inbox at RabbitMQ: amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST]?inbox=QUEUE[&idle=TIME][&trust=yes]"""

import re
from typing import NamedTuple

from trotline.adapters.amqp import INBOX_FORM
from trotline.adapters.amqp.broker_url import Address, address_of
from trotline.errors import SettingsError
from trotline.rules.inbox_urls import InboxOptions, split

HINT = f'Write it as "{INBOX_FORM}".'
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
_OWN = ("trotline.", "amq.")
"""Begin of our own queues, and of those that are the server's."""


class InboxAddress(NamedTuple):
    server: Address
    options: InboxOptions


def parse(url: str) -> InboxAddress:
    """ValueError says what is wrong, without the password."""
    options = split(url)
    if not _NAME.fullmatch(options.name) or options.name.startswith(_OWN):
        raise ValueError(f"the URL has no inbox name, or an invalid one: letters, digits, . _ : and -. {HINT}")
    try:
        return InboxAddress(address_of(options.server), options)
    except SettingsError as error:
        raise ValueError(f"{error.what}. {HINT}") from None

"""The URL of an inbox at SQS: sqs://REGION?inbox=QUEUE[&idle=TIME][&trust=yes], and the options of `broker_url`."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from trotline.adapters.sqs import INBOX_FORM
from trotline.adapters.sqs.broker_url import Address, read
from trotline.errors import SettingsError
from trotline.rules.inbox_urls import InboxOptions, split

HINT = f'Write it as "{INBOX_FORM}".'
_NAME = re.compile(r"[A-Za-z0-9_-]{1,73}")
"""With "-parked" at most 80 characters. FIFO queues, which end in .fifo, are no inboxes."""


class InboxAddress(NamedTuple):
    server: Address
    options: InboxOptions


def parse(url: str) -> InboxAddress:
    """ValueError says what is wrong, without secrets."""
    options = split(url)
    if not _NAME.fullmatch(options.name):
        raise ValueError(f"the URL has no inbox name, or an invalid one: letters, digits, _ and -. {HINT}")
    if urlsplit(options.server).path.strip("/"):
        raise ValueError(f"the prefix of queues is for frontiers; an inbox has its whole name in inbox=. {HINT}")
    try:
        return InboxAddress(read(options.server, f'"{INBOX_FORM}"'), options)
    except SettingsError as error:
        raise ValueError(f"{error.what}. {HINT}") from None

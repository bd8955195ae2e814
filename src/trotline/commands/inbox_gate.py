"""Where the entries of an inbox go: through a gate into a job."""

import codecs
import logging
from collections.abc import Callable

from trotline.commands.input_lines import task_of
from trotline.commands.put_with_retries import LoopClock, open_feed
from trotline.config import components
from trotline.coordinator.inbox_reader import InboxReader
from trotline.errors import SettingsError
from trotline.frontier.gate import Gate
from trotline.frontier.outage_log import OutageLog
from trotline.model.task import Task
from trotline.ports.backend import OpenJob
from trotline.ports.inbox import Inbox
from trotline.rules.inbox_fields import check_open
from trotline.rules.known_pools import KnownPools
from trotline.spider.spider import Spider

log = logging.getLogger("trotline.inbox")


class _JobInput:
    def __init__(self, opened: OpenJob, frontier: str, high_water: int, say: Callable[[str], None]) -> None:
        self.put = open_feed(opened, frontier, high_water, say).put
        self.progress = opened.console.progress


def reader_into(
    inbox: Inbox,
    opened: OpenJob,
    frontier: str,
    gate: Gate,
    read: Callable[[bytes], Task],
    *,
    say: Callable[[str], None],
    high_water: int,
) -> InboxReader:
    """`say` gets the reason while too many tasks wait, or the frontier is unreachable; "" when it goes on."""
    outage = OutageLog(log, "inbox.unreachable")
    return InboxReader(
        inbox, _JobInput(opened, frontier, high_water, say), gate, read, LoopClock(), report=outage.report
    )


def spider_reader(
    inbox: Inbox,
    spider: Spider,
    opened: OpenJob,
    frontier: str,
    pools: KnownPools | None,
    *,
    say: Callable[[str], None],
    high_water: int,
) -> InboxReader:
    gate, read = components.open_gate(spider, pools), _entries_of(spider, trusted=inbox.trusted)
    return reader_into(inbox, opened, frontier, gate, read, say=say, high_water=high_water)


def entry_text(entry: bytes, *, trusted: bool) -> bytes:
    """The entry without blanks around it; ValueError if it is neither JSON nor a URL of the web, or sets what only
    trusted producers may."""
    text = entry.removeprefix(codecs.BOM_UTF8).strip(b" \t\r\n\0")
    if not text:
        raise ValueError("the entry is empty")
    if not text.startswith((b"{", b"#")) and not text[:8].lower().startswith((b"http://", b"https://")):
        # Not quoted: it may be half of an object with headers.
        raise ValueError("the entry is neither an http(s) URL nor a JSON object")
    if text.startswith(b"{") and not trusted:
        check_open(text)
    return text


def _entries_of(spider: Spider, *, trusted: bool) -> Callable[[bytes], Task]:
    """Reads an entry: a URL or a JSON object, as a line of a list."""
    route = next(iter(spider.routes.values()), None)
    if route is None:
        raise SettingsError(f"spider {spider.name!r} has no routes", hint="Write a handler with @spider.page")

    def read(entry: bytes) -> Task:
        task = task_of(route, 1, entry_text(entry, trusted=trusted))
        if task is None:
            raise ValueError("a remark")
        return task

    return read

"""llhttp's answers, well-formed and not, sent over a real socket to the fetcher."""

import asyncio
import re
from collections.abc import Iterator

from tests.e2e.raw_site import fetcher, site, task
from tests.suites.accounts import check
from tests.suites.packages import AIOHTTP
from trotline.model.answer import Answer
from trotline.model.limits import Limits

FOLDER = "vendor/llhttp/test/response"
CASE = re.compile(r'<!-- meta=\{"type": "response"[^\n]*\n```http\n(.*?)\n```\n.*?```log\n(.*?)\n```', re.DOTALL)
MESSAGE = re.compile(r"off=\d+ message begin")
HEAD = re.compile(r"headers complete status=(\d+) v=\d/\d flags=(\w+) content_length=(\d+)")
BODY = re.compile(r"off=\d+ len=(\d+) span\[body\]")
CHUNKED, HAS_LENGTH = 0x8, 0x20


def cases() -> Iterator[tuple[str, bytes, str]]:
    """Name, what is sent, and llhttp's own account of it; with its strict settings, which are ours."""
    for file, content in AIOHTTP.files(FOLDER):
        for number, (sent, log) in enumerate(CASE.findall(content.decode())):
            yield f"{file}:{number}", raw(sent), log


def raw(written: str) -> bytes:
    """The bytes that the suite's way of writing them stands for."""
    text = written.replace("\\\n", "").replace("\n", "\r\n")
    for sign, byte in (("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t"), ("\\f", "\f")):
        text = text.replace(sign, byte)
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), text).encode("latin-1")


def wanted(log: str) -> tuple[int, int] | None:
    """Status and length of the body of the answer; None when there is none, or only half of one."""
    for message in MESSAGE.split(log)[1:]:
        head = HEAD.search(message)
        if head is None:
            return None
        status, flags, length = int(head[1]), int(head[2], 16), int(head[3])
        if status < 200 and status != 101:
            continue
        complete = message.find("message complete")
        broken = message.find("error code=")
        body = sum(int(size) for size in BODY.findall(message))
        if complete >= 0 and (broken < 0 or complete < broken):
            return status, body
        bounded = flags & CHUNKED or (flags & HAS_LENGTH and body < length)
        return None if broken >= 0 or bounded else (status, body)
    return None


async def got(sent: bytes) -> tuple[int, int] | None:
    async def reply(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()
        writer.close()

    async with site(reply) as there, fetcher(Limits(total=5.0)) as ours:
        outcome = await ours.fetch(task(there.url()))
    return (outcome.status, outcome.wire_bytes) if isinstance(outcome, Answer) else None


async def test_answers_are_understood_or_refused_as_llhttp_says() -> None:
    outcomes: dict[str, str] = {}
    for name, sent, log in cases():
        found, right = await got(sent), wanted(log)
        outcomes[name] = "" if found == right else f"{sent!r} is {right}: {found}"
    check("llhttp-responses", outcomes)

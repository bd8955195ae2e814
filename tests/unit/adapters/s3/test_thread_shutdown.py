"""A process that used S3 ends with its own exit code, and not with SIGABRT."""

import subprocess
import sys

SCRIPT = """
import asyncio, sys, threading, time
from asyncio import selector_events

from trotline.adapters.s3.s3_url import address_of
from trotline.adapters.s3.object_store import S3Objects
from trotline.errors import ArchiveUnreachable

wake = selector_events.BaseSelectorEventLoop._write_to_self


def wake_slowly(loop):
    # As on a machine that is busy: the loop goes on before the thread that woke it does.
    wake(loop)
    if threading.get_ident() != threading.main_thread().ident:
        time.sleep(0.5)


async def ask():
    objects = S3Objects(address_of("s3://pages/old?endpoint=http://127.0.0.1:9"))
    try:
        await objects.size_of("x")
    except ArchiveUnreachable:
        return 2


class Large:
    def __del__(self, sleep=time.sleep):
        sleep(1)  # an interpreter that has much to clear


large = Large()
selector_events.BaseSelectorEventLoop._write_to_self = wake_slowly
sys.exit(asyncio.run(ask()))
"""


def test_an_exit_right_after_an_error_is_no_abort(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2, ended.stderr

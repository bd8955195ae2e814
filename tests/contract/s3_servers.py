"""The S3 server that all tests of a process share; each test has a prefix of its own."""

import atexit
from contextlib import ExitStack
from functools import lru_cache
from uuid import uuid4

from trotline.testing.seaweedfs_server import S3Server, seaweedfs

_running = ExitStack()
atexit.register(_running.close)


@lru_cache
def s3() -> S3Server:
    """It lives as long as the tests do."""
    return _running.enter_context(seaweedfs())


def own_prefix() -> str:
    return f"t{uuid4().hex[:12]}"

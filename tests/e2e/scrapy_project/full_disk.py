"""A storage of feeds whose disk is full for a while, from the second page on."""

import errno
import io
import os
import time
from typing import Any

from scrapy.extensions.feedexport import FileFeedStorage

FULL_FOR = 3.0


class FullDisk(FileFeedStorage):
    def open(self, spider: Any) -> Any:
        path = os.path.abspath(self.path)  # noqa: PTH100 - as Scrapy has it
        return io.BufferedWriter(_File(path, "ab"))


class _File(io.FileIO):
    writes = 0
    full_until = 0.0

    def write(self, data: Any, /) -> int | None:
        self.writes += 1
        if self.writes == 2:
            self.full_until = time.monotonic() + FULL_FOR
        if time.monotonic() < self.full_until:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)

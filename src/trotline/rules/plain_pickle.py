"""Pickles of plain values, read without running anything: no class, no function and no module is looked up.

One name is known: lxml's class of texts, which is in each request that a link extractor has made. It stands for text.
"""

import io
import pickle
from typing import Any

LARGEST = 4 * 1024 * 1024
"""Bytes of a pickle."""


class NotPlain(ValueError):
    """A pickle that is damaged, or that names code."""


class _Text:
    def __new__(cls, text: Any = "") -> Any:
        if type(text) is not str:
            raise NotPlain("a text in it is no text")
        return text


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("lxml.etree", "_ElementUnicodeResult"):
            return _Text
        raise NotPlain(f"it names {module[:60]}.{name[:60]}, and only plain values are read")

    def persistent_load(self, pid: Any) -> Any:
        raise NotPlain("it names an object outside of it")


def read(data: bytes) -> Any:
    """The value: text, bytes, numbers, None, lists, tuples, sets and dicts. NotPlain says why there is none."""
    if len(data) > LARGEST:
        raise NotPlain(f"it has {len(data):,} bytes; {LARGEST:,} are read")
    try:
        return _Reader(io.BytesIO(data)).load()
    except NotPlain:
        raise
    except Exception as error:
        # A damaged pickle raises anything.
        raise NotPlain(f"it is damaged: {type(error).__name__}") from error

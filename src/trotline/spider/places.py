"""Where in the author's code something went wrong."""

import os
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_NOT_THEIRS = ("<", *(folder + os.sep for folder in [*_LIBRARIES, str(Path(__file__).parent.parent)]))
_LONGEST = 300


def one_line(error: BaseException, handler: Callable[..., Any]) -> str:
    """`ValueError: no price at shop.py:31 in product`: the error and the author's last line on the way to it."""
    said = " ".join(str(error).split())
    if len(said) > _LONGEST:
        said = said[:_LONGEST] + "..."
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return f"{what} at {_place(error, handler)}"


def _place(error: BaseException, handler: Callable[..., Any]) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(handler, "__code__", None)
    mine = code.co_filename if code is not None else ""
    for frame in reversed(frames):
        if frame.filename == mine or _is_authors(frame.filename):
            return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    if code is not None:
        return f"{Path(mine).name}:{code.co_firstlineno} in {code.co_name}"
    return repr(handler)


def _is_authors(file: str) -> bool:
    return not file.startswith(_NOT_THEIRS)

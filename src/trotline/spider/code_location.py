"""Locates errors in the author's code: file, line, traceback."""

import os
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trotline.rules.task_checks import said, shown

_LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_NOT_AUTHORS = ("<", *(folder + os.sep for folder in [*_LIBRARIES, str(Path(__file__).parent.parent)]))
_COMPILED = (".pyx", ".pxi")
"""Sources of compiled libraries, which appear without a folder."""
_LONGEST = 300
_LONGEST_TRACEBACK = 6_000
"""Characters of a traceback; the last ones are kept."""


def one_line(error: BaseException, handler: Callable[..., Any], source: object = None) -> str:
    """`ValueError: no price at shop.py:31 in product`: the error and the author's innermost line."""
    return f"{_headline(error)} at {_place(error, handler, source)}"


def group(error: BaseException, handler: Callable[..., Any], source: object = None) -> str:
    """`ValueError at shop.py:31 in product`: without the message, so that equal errors of all pages are one group."""
    return f"{type(error).__name__} at {_place(error, handler, source)}"


def traceback_text(error: BaseException) -> str:
    """The error in one line, then its traceback from the author's first line on, truncated."""
    headline = _headline(error)
    try:
        parts = traceback.TracebackException.from_exception(error, compact=True)
        parts.stack = traceback.StackSummary.from_list(_from_the_author_on(parts.stack))
        # Without the usual first line, which people and log monitors take for a crash of the program itself.
        text = "".join(parts.format()).replace("Traceback (most recent call last):\n", "")
    except Exception as defect:
        # Errors with properties of their own may raise while they are formatted.
        text = f"(its traceback cannot be shown: {type(defect).__name__})"
    if len(text) > _LONGEST_TRACEBACK:
        text = "(cut)\n..." + text[-_LONGEST_TRACEBACK:]
    return f"{headline}\n\n{text}".rstrip()


def _from_the_author_on(frames: "traceback.StackSummary") -> "list[traceback.FrameSummary]":
    """Without Trotline's own frames before the handler."""
    first = next((place for place, frame in enumerate(frames) if _is_authors(frame.filename)), 0)
    return list(frames)[first:]


def _headline(error: BaseException) -> str:
    text = " ".join(said(error).split())
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def line_of(given: object, handler: Callable[..., Any]) -> str:
    """`shop.py:31 in product`: the current line of a generator, or the first line of its function."""
    frame = getattr(given, "gi_frame", None) or getattr(given, "ag_frame", None)
    if frame is not None:
        return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
    return _first_line(handler)


def _place(error: BaseException, handler: Callable[..., Any], source: object) -> str:
    """An error in what a generator yielded has none of its lines: then the one at which it waits."""
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(handler, "__code__", None)
    mine = code.co_filename if code is not None else ""
    for frame in reversed(frames):
        if frame.filename == mine or _is_authors(frame.filename):
            return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    return line_of(source, handler)


def _first_line(handler: Callable[..., Any]) -> str:
    code = getattr(handler, "__code__", None)
    return shown(handler) if code is None else f"{Path(code.co_filename).name}:{code.co_firstlineno} in {code.co_name}"


def _is_authors(file: str) -> bool:
    return not file.startswith(_NOT_AUTHORS) and not file.endswith(_COMPILED)

"""The Python prompt of `trotline shell`. Errors show the user's own lines, not those of Trotline."""

import code
import itertools
import sys
import traceback
from pathlib import Path

from trotline.cli.formatting import safe_lines
from trotline.commands.shell import NotFetched
from trotline.errors import TrotlineError

_OURS = str(Path(__file__).parent.parent)


class ShellConsole(code.InteractiveConsole):
    failed = False
    """Has a statement raised?"""

    def showtraceback(self) -> None:
        self.failed = True
        error = sys.exc_info()[1]
        if isinstance(error, NotFetched | TrotlineError):
            self.write(f"{safe_lines(str(error))}\n")
        elif error is not None:
            self.write(_shown(error))

    def run_one(self, statement: str) -> bool:
        """False: it is not complete. Its lines are kept as those of a file, so that errors can show them."""
        return not self.runsource(statement, "<-c>", "exec" if "\n" in statement else "single")


def _shown(error: BaseException) -> str:
    """Without the frames of the prompt before the user's input, and from the first one of Trotline after it on. An
    error that Trotline raised says all in its own line: what caused it is left out."""
    told = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in told.stack if frame.filename != code.__file__]
    kept = list(itertools.takewhile(lambda frame: not frame.filename.startswith(_OURS), frames[_before(frames) :]))
    told.stack = traceback.StackSummary.from_list(kept)
    raised_by_us = bool(frames) and frames[-1].filename.startswith(_OURS)
    return "".join(told.format(chain=not raised_by_us))


def _before(frames: list[traceback.FrameSummary]) -> int:
    """How many frames come before the user's input."""
    return next((place for place, frame in enumerate(frames) if frame.filename.startswith("<")), 0)

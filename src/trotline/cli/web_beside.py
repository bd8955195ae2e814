"""`trotline run --web`: the dashboard as a process of its own, for as long as the run lasts."""

import contextlib
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator

from trotline.commands.web import LISTEN
from trotline.config.settings import Settings
from trotline.model.time import Seconds

_READY_WITHIN: Seconds = 10.0
_END_WITHIN: Seconds = 5.0
_LISTENING = "listening on "


@contextlib.contextmanager
def web_beside(settings: Settings, spider: str) -> Iterator[str]:
    """What to tell the operator: the address, or why there is no dashboard; the run goes on in any case."""
    with contextlib.ExitStack() as stack:
        said = _started(stack, settings, spider, LISTEN)
        if not said.startswith(_LISTENING):
            # Another run has its dashboard there: any free port will do.
            said = _started(stack, settings, spider, "127.0.0.1:0")
        address = said.removeprefix(_LISTENING).split("   ")[0]
        yield f"dashboard: {address}" if said.startswith(_LISTENING) else f"no dashboard: {said}"


def _started(stack: contextlib.ExitStack, settings: Settings, spider: str, listen: str) -> str:
    """The first line that it prints."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-P", "-m", "trotline.cli", "web", spider, "--listen", listen, "--end-with-stdin"],
        # Not as options: URLs may have passwords in them, and every user can list command lines.
        env={**os.environ, "TROTLINE_FRONTIER": settings.frontier, "TROTLINE_SINK": settings.sink},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Ctrl-C is for the run, which ends it.
        start_new_session=True,
        text=True,
    )
    stack.callback(_end, process)
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        if waiting.select(_READY_WITHIN):
            return process.stdout.readline().strip() or f"trotline web --listen {listen} says why"
    return f"it was not ready within {_READY_WITHIN:.0f} s"


def _end(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101 - pipes were asked for
    process.stdin.close()
    try:
        process.wait(_END_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()

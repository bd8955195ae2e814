"""`trotline run --web`: the dashboard as a process of its own, for as long as the run lasts."""

import contextlib
import os
import secrets
import selectors
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from trotline.commands.web import LISTEN
from trotline.config.settings import Settings
from trotline.model.time import Seconds

_READY_WITHIN: Seconds = 10.0
_END_WITHIN: Seconds = 5.0
_LISTENING = "listening on "
_TOKEN = "DASHBOARD_TOKEN"  # noqa: S105 - the name of the variable


class Said(NamedTuple):
    """What to tell the operator."""

    text: str
    """For a terminal: who reads it may steer the run."""
    logged: str
    """For a log, which is kept and read by others: without the token."""


@contextlib.contextmanager
def web_beside(settings: Settings, spider: str) -> Iterator[Said]:
    """The address, or why there is no dashboard; the run goes on in any case.

    The address has a token behind "#": other users of this machine could steer the run otherwise.
    """
    token = secrets.token_urlsafe(32)
    with contextlib.ExitStack() as stack:
        yield _said(_started(stack, settings, spider, token), token)


def _said(said: str, token: str) -> Said:
    """Of the first line of the dashboard."""
    if not said.startswith(_LISTENING):
        return Said(f"no dashboard: {said}", f"no dashboard: {said}")
    address = said.removeprefix(_LISTENING).split("   ")[0]
    return Said(
        f"dashboard: {address}login#{token}",
        f"dashboard: {address} (its token is not for a log; one with a token of yours: "
        "trotline web --token-operate file:PATH)",
    )


def _started(stack: contextlib.ExitStack, settings: Settings, spider: str, token: str) -> str:
    """The first line that it prints. Where another run has its dashboard, it takes any free port."""
    words = ["web", spider, "--listen", LISTEN, "--end-with-stdin", "--token-operate", f"env:{_TOKEN}"]
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-P", "-m", "trotline.cli", *words],
        # Not as options: URLs may have passwords in them, and every user can list command lines.
        env={**os.environ, "TROTLINE_FRONTIER": settings.frontier, "TROTLINE_SINK": settings.sink, _TOKEN: token},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Its log of changes; not into the live view.
        stderr=subprocess.DEVNULL if sys.stderr.isatty() else None,
        # Ctrl-C is for the run, which ends it.
        start_new_session=True,
        text=True,
    )
    stack.callback(_end, process)
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        if waiting.select(_READY_WITHIN):
            return process.stdout.readline().strip() or f"trotline web --listen {LISTEN} says why"
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

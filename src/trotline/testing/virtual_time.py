"""An event loop on which time jumps: a crawl of hours runs in milliseconds, the same way every time."""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from trotline.model.time import Seconds

T = TypeVar("T")
_TURN: Seconds = 1e-6


class Stuck(RuntimeError):
    """All tasks wait and nothing is scheduled: the program under test would hang for ever."""


class _JumpingSelector(selectors.BaseSelector):
    """Never waits: where a real selector would, it turns the clock."""

    def __init__(self) -> None:
        self._keys: dict[int, selectors.SelectorKey] = {}
        self.now: Seconds = 0.0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = selectors.SelectorKey(fileobj, number, events, data)
        self._keys[number] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("all tasks wait, and nothing is scheduled")
        # Every turn takes a little time, as it does in the world: a waiter whose timer rings a hair early
        # would otherwise see no time pass, and wait for that hair for ever.
        self.now += max(timeout, _TURN)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` and every sleep and timeout are virtual. No threads, no sockets: what runs here talks through ports."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        # A timer that is due is due exactly, not within the resolution of a hardware clock.
        self._clock_resolution = 1e-9

    def time(self) -> Seconds:
        return self._jumping.now

    def freeze(self, seconds: Seconds) -> None:
        """Nothing runs for so long, as when a process is stopped."""
        self._jumping.now += seconds


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)

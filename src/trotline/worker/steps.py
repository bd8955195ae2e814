"""Async handlers, step by step: what one of them does between two waits is its own page's doing."""

import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def each_step(
    coroutine: Coroutine[Any, Any, T], begin: Callable[[], None], end: Callable[[], None]
) -> Generator[Any, Any, T]:
    """Await `coroutine` with `begin` before and `end` after each of its steps.

    Other pages are read while it waits, so it must not stand in the marker then; but if it blocks the loop, crashes or
    eats the memory in one of its steps, it does.
    """
    step: Callable[[], Any] = partial(coroutine.send, None)
    while True:
        begin()
        try:
            waits_for = step()
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            end()
        try:
            answer = yield waits_for
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:
            step = partial(coroutine.throw, error)
        else:
            step = partial(coroutine.send, answer)

"""Calls hooks, and turns what they return or raise into what a visit needs."""

import logging
from asyncio import CancelledError
from collections.abc import Callable, Iterable
from typing import Any

from trotline.errors import SpiderBroken
from trotline.model.harvest import Follow
from trotline.model.record import Record
from trotline.model.task import Task
from trotline.rules.task_checks import shown
from trotline.spider.code_location import group, one_line, traceback_text
from trotline.spider.handler_failed import HandlerFailed, is_cancelled, is_interrupt
from trotline.spider.hooks import Drop, Hook, WorkerHandle
from trotline.spider.page import Page
from trotline.spider.records import is_typed
from trotline.spider.request import Request

log = logging.getLogger("trotline.hooks")


def before_request(hooks: tuple[Hook, ...], task: Task) -> Task | str:
    """The task as it is to be sent, or why it is dropped; for hooks that are plain functions. HandlerFailed names the
    hook that raised."""
    request = Request(task)
    for hook in hooks:
        try:
            said = hook.call(request)
            if said is not None:
                return _not_sent(hook, said)
            task = request.task()
        except BaseException as error:
            if _passes(error):
                raise
            raise failed(hook, error) from error
    return task


async def before_request_async(hooks: tuple[Hook, ...], task: Task) -> Task | str:
    """The same where some of them are coroutine functions."""
    request = Request(task)
    for hook in hooks:
        try:
            said = hook.call(request)
            if hook.is_async:
                said = await said
            if said is not None:
                return _not_sent(hook, said)
            task = request.task()
        except BaseException as error:
            if _passes(error):
                raise
            raise failed(hook, error) from error
    return task


def any_async(hooks: tuple[Hook, ...]) -> bool:
    return any(hook.is_async for hook in hooks)


def after_answer(hooks: tuple[Hook, ...], page: Page) -> Page | str:
    """The page that is to be read, or why it is dropped."""
    for hook in hooks:
        try:
            said = hook.call(page)
            if isinstance(said, Drop):
                return dropped(hook, said)
            if said is not None and not isinstance(said, Page):
                raise TypeError(f"it returned {shown(said)}; return None, Drop(why), or page.with_body(...)")
        except BaseException as error:
            if _passes(error):
                raise
            raise failed(hook, error) from error
        page = said if said is not None else page
    return page


def records(hooks: tuple[Hook, ...], item: Any, page: Page, count: Callable[[str], None]) -> list[Any]:
    """What becomes of one item of a handler: itself, another one, several, or none. `count` gets why one is dropped."""
    items = [item]
    for hook in hooks:
        made: list[Any] = []
        for one in items:
            try:
                for kept in _kept(hook.call(one, page), one):
                    if isinstance(kept, Drop):
                        count(f"{kept.reason} ({hook.name})")
                    else:
                        made.append(kept)
            except BaseException as error:
                if _passes(error):
                    raise
                raise failed(hook, error) from error
        items = made
    return items


async def on_start(hooks: tuple[Hook, ...], worker: WorkerHandle) -> None:
    """SpiderBroken if one raises: without what it prepares, no page can be read."""
    for hook in hooks:
        try:
            said = hook.call(worker)
            if hook.is_async:
                await said
        except Exception as error:
            hint = f"No page is visited until it works.\n\n{traceback_text(error)}"
            raise SpiderBroken(f"{hook.title}: {one_line(error, hook.function)}", hint=hint) from error


async def on_finish(hooks: tuple[Hook, ...], worker: WorkerHandle) -> None:
    """All pages are stored: an error is logged, and the others run."""
    for hook in hooks:
        try:
            said = hook.call(worker)
            if hook.is_async:
                await said
        except Exception as error:
            log.error("hook.failed %s: %s\n%s", hook.title, one_line(error, hook.function), traceback_text(error))


def dropped(hook: Hook, drop: Drop) -> str:
    return f"{drop.reason} ({hook.name})"


def failed(hook: Hook, error: BaseException) -> HandlerFailed:
    """As the failure of a handler, with the hook's name."""
    place = f"{hook.title}: {group(error, hook.function)}"
    text = f"{hook.title}: {one_line(error, hook.function)}"
    return HandlerFailed(text, group=place, traceback_text=f"{hook.title}: {traceback_text(error)}")


def _passes(error: BaseException) -> bool:
    """Neither an interrupt nor a cancellation is the hook's failure."""
    return (
        is_interrupt(error)
        or isinstance(error, GeneratorExit)
        or (isinstance(error, CancelledError) and is_cancelled())
    )


def _kept(said: Any, given: Any) -> Iterable[Any]:
    if said is None:
        return (given,)
    single = isinstance(said, dict | Drop | Record) or is_typed(said)
    if not single and (isinstance(said, str | bytes) or not isinstance(said, Iterable)):
        raise TypeError(f"it returned {shown(said)}; return None, a record, several records, or Drop(why)")
    return (_checked(one) for one in ((said,) if single else said) if one is not None)


def _checked(one: Any) -> Any:
    if isinstance(one, Task | Follow):
        raise TypeError("it gave a task; tasks come from handlers")
    return one


def _not_sent(hook: Hook, said: Any) -> str:
    if not isinstance(said, Drop):
        allowed = "return None or Drop(why), and change request.headers and request.body in place"
        raise TypeError(f"it returned {shown(said)}; {allowed}")
    return dropped(hook, said)

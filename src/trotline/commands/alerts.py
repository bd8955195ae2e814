"""The alerts of jobs, as they are kept in their notes; and a test message to every receiver."""

import asyncio
import time
from collections.abc import Sequence

import msgspec

from trotline.commands.find_jobs import Target, console_of
from trotline.errors import AlertNotDelivered, FrontierError, FrontierUnreachable
from trotline.model.alert import Alert, AlertBook, AlertMessage, AlertState, Severity
from trotline.model.job import State
from trotline.model.time import Moment, Seconds
from trotline.ports.alert_receiver import AlertReceiver
from trotline.rules import alert_states, redaction
from trotline.rules.alert_texts import unchecked


class JobBook(msgspec.Struct, frozen=True, kw_only=True):
    target: Target
    book: AlertBook
    now: Moment
    """The frontier's time."""
    unchecked: str = ""
    """It has not ended, and no process evaluates its rules."""


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    receiver: str
    place: str
    took: Seconds
    error: str = ""
    hint: str = ""


async def books(targets: Sequence[Target]) -> list[JobBook]:
    """Of the jobs that have any, and of those that run."""
    found = []
    for target in targets:
        try:
            async with console_of(target) as console:
                [note] = await console.read_notes([alert_states.NOTE])
                progress = await console.progress()
                ended = progress.finished_at is not None or progress.state is State.CANCELLED
                if note is not None or not ended:
                    book = AlertBook() if note is None else alert_states.decode(note.data)
                    checked = progress.now - book.checked_at if book.checked_at else None
                    late = "" if ended else unchecked(target.job, checked)
                    found.append(JobBook(target=target, book=book, now=progress.now, unchecked=late))
        except FrontierUnreachable:
            raise
        except FrontierError:
            # A damaged job: `trotline status` names it.
            continue
    return found


async def send_test(receivers: Sequence[AlertReceiver]) -> list[Tested]:
    """Send a message that says that it is a test, to all at the same time."""
    now = time.time()
    alert = Alert(
        rule="test",
        state=AlertState.FIRING,
        severity=Severity.CRITICAL,
        text="this is a test of trotline alerts --test: no job is in trouble",
        next="trotline alerts",
        since=now,
        fired_at=now,
    )
    message = AlertMessage(id=f"test.{int(now * 1000)}", job="test", spider="test", at=now, alerts=(alert,))
    return list(await asyncio.gather(*(_tested(receiver, message) for receiver in receivers)))


async def _tested(receiver: AlertReceiver, message: AlertMessage) -> Tested:
    clock = asyncio.get_running_loop().time
    began = clock()
    error = hint = ""
    try:
        await receiver.send(message)
    except AlertNotDelivered as failure:
        error, hint = redaction.text(failure.what), failure.hint
    return Tested(receiver=receiver.name, place=receiver.place, took=clock() - began, error=error, hint=hint)

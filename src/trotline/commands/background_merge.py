"""A merge beside other work of the same process: the coordinator's, after a job."""

import asyncio
import threading

from trotline.commands.merge import MergePlan, MergeReport, merge
from trotline.errors import SinkError, TermOver, TrotlineError
from trotline.rules import merge_note
from trotline.rules.merge_note import MergeNote


async def merged_after(plan: MergePlan) -> MergeNote:
    """SinkError: try again later. Another error is the rule's, and part of the answer. Cancelled, it ends after the
    step that is under way."""
    cancelled = threading.Event()

    def on_step(report: MergeReport) -> None:
        if cancelled.is_set():
            raise TermOver("the merge was cancelled", hint="The next one goes on where it was.")

    try:
        # In a thread with a loop of its own: it computes for seconds, and the leader must show that it lives.
        report = await asyncio.to_thread(lambda: asyncio.run(merge(plan, on_step)))
    except asyncio.CancelledError:
        cancelled.set()
        raise
    except SinkError:
        raise
    except TrotlineError as error:
        return merge_note.failed(error.what)
    return MergeNote(read=report.read, totals=report.after)

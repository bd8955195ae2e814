"""Tasks that a page has for other spiders: through their gates, like seeds."""

from collections.abc import Sequence

from trotline.frontier.gate_result import GateResult
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.spider.handoffs import Handoff
from trotline.worker import storable_tasks
from trotline.worker.dependencies import Others


def hand_over(
    others: Others | None, handoffs: Sequence[Handoff], links: GateResult, now: Moment
) -> dict[str, list[Task]]:
    """By the name of the spider. What its gate refuses is counted with the links of the page."""
    found: dict[str, list[Task]] = {}
    for name in dict.fromkeys(handoff.spider.name for handoff in handoffs):
        own = [handoff for handoff in handoffs if handoff.spider.name == name]
        drafts = [handoff.task for handoff in own]
        if others is None:
            # The committer finds no job of it.
            found[name] = drafts
            continue
        through = others.gate(own[0].spider).seeds(drafts, now)
        if through.tasks:
            found[name] = storable_tasks.checked(through.tasks, len(through.tasks))
        for why, count in through.refused.items():
            links.refuse(f"for spider {name}: {why}", count, through.examples.get(why, ""))
    return found

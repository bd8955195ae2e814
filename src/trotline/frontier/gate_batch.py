"""Numbered drafts through the gate: which pass, and why the others do not."""

from collections.abc import Sequence

from trotline.frontier.gate import Gate
from trotline.model.task import Task
from trotline.model.time import Moment

Numbered = tuple[int, Task]


def sift(gate: Gate, drafts: Sequence[Numbered], now: Moment) -> tuple[list[Numbered], dict[int, str]]:
    """Those that may pass, as tasks, and the reason for each of the others. Nearly always all pass: only otherwise each
    is asked alone."""
    all_of_them = gate.seeds([draft for _, draft in drafts], now)
    if len(all_of_them.tasks) == len(drafts):
        return [(number, task) for (number, _), task in zip(drafts, all_of_them.tasks, strict=True)], {}
    passed: list[Numbered] = []
    refused: dict[int, str] = {}
    for number, draft in drafts:
        alone = gate.seeds([draft], now)
        if alone.tasks:
            passed.append((number, alone.tasks[0]))
        else:
            refused[number] = ", ".join(alone.refused)
    return passed, refused

"""What is added to a `Queue`: URLs, JSON objects and tasks become drafts, in pieces."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from trotline.commands.inbox_gate import entry_text
from trotline.frontier.gate import Gate
from trotline.frontier.gate_result import GateResult
from trotline.model import task_json
from trotline.model.lease import Admission
from trotline.model.queue_job import ROUTE
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules import redaction, task_checks

BATCH = 500
_DRAINING = "the job or its lane is draining"


class Added(msgspec.Struct):
    """What became of added tasks."""

    new: int = 0
    """Admitted; of the children of a task: passed on to the frontier, which knows whether they are new."""
    duplicate: int = 0
    refused: dict[str, int] = {}
    """Reason -> how many."""
    examples: dict[str, str] = {}
    """Reason -> one of them, without secrets."""

    def count(self, result: GateResult, answers: Sequence[Admission]) -> None:
        self._refuse(result)
        counts = Counter(answers)
        self.new += counts[Admission.NEW]
        self.duplicate += counts[Admission.DUPLICATE] + result.known
        if counts[Admission.REFUSED]:
            self.refused[_DRAINING] = self.refused.get(_DRAINING, 0) + counts[Admission.REFUSED]

    def passed(self, result: GateResult) -> None:
        self._refuse(result)
        self.new += len(result.tasks)
        self.duplicate += result.known

    def add(self, more: "Added") -> None:
        self.new += more.new
        self.duplicate += more.duplicate
        self._merge(more.refused, more.examples)

    def _refuse(self, result: GateResult) -> None:
        self._merge(result.refused, {why: redaction.url(url) for why, url in result.examples.items()})

    def _merge(self, refused: Mapping[str, int], examples: Mapping[str, str]) -> None:
        for why, count in refused.items():
            self.refused[why] = self.refused.get(why, 0) + count
        for why, url in examples.items():
            self.examples.setdefault(why, url)


class QueueInput:
    def __init__(self, gate: Gate, retries: int) -> None:
        self.gate = gate
        self._defaults: dict[str, Any] = {"job_type": ROUTE, "max_retries": retries}

    def pieces(self, given: Iterable[Any], now: Callable[[], Moment]) -> Iterator[list[Task]]:
        """ValueError or TypeError names an invalid one; those of the pieces before it are added."""
        source = iter(given)
        while some := [self._draft(one, now) for one in islice(source, BATCH)]:
            yield some

    def all(self, given: Iterable[Any], now: Callable[[], Moment]) -> list[Task]:
        if isinstance(given, str):
            raise TypeError("children is a list of URLs or tasks; for one: children=[url]")
        return [self._draft(one, now) for one in given]

    def entry(self, entry: bytes, *, trusted: bool) -> Task:
        """The draft in an entry of an inbox; ValueError says why there is none."""
        try:
            text = entry_text(entry, trusted=trusted).decode()
            fields = msgspec.json.decode(text, type=dict) if text.startswith("{") else {"url": text}
            return task_checks.task(task_json.from_seed(self._defaults | fields))
        except (TypeError, RecursionError, UnicodeDecodeError, msgspec.MsgspecError) as error:
            raise ValueError(f"not a task: {error}") from error

    def _draft(self, given: str | Mapping[str, Any] | Task, now: Callable[[], Moment]) -> Task:
        if isinstance(given, Task):
            return task_checks.task(given if given.route else msgspec.structs.replace(given, route=ROUTE))
        fields: dict[str, Any] = {"url": given} if isinstance(given, str) else dict(given)
        if not isinstance(fields.get("url"), str):
            # Without the values: headers may be among them.
            seen = f"an object with {', '.join(map(task_checks.shown, fields)) or 'nothing'}"
            raise TypeError(f"{seen} is not a URL, nor an object with a url")
        if (delay := fields.pop("delay", None)) is not None:
            fields["not_before"] = now() + _delay(delay)
        return task_checks.task(task_json.from_seed(self._defaults | fields))


def _delay(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or given < 0:
        raise task_checks.InvalidValue(f"delay is {task_checks.shown(given)}; give seconds from now, 0 or more")
    return float(given)

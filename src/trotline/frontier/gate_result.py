"""Results of the gate: new tasks, refused links with their reasons, explanations."""

import msgspec

from trotline.model.task import Task
from trotline.model.time import Moment


class CutLink(msgspec.Struct, frozen=True):
    """A link dropped by a limit or a trap rule; goes to the ledger, where `trace` finds it."""

    url: str
    route: str
    fingerprint: int
    lane: str
    why: str
    depth: int


class GateResult(msgspec.Struct):
    """New tasks, refused links by reason, and the number of duplicates."""

    tasks: list[Task] = []
    refused: dict[str, int] = {}
    """Reason -> count."""
    examples: dict[str, str] = {}
    """Reason -> a URL, for reasons that are always reported."""
    cut: list[CutLink] = []
    """Links dropped by a limit or a trap rule, up to a maximum."""
    alike: str = ""
    """The counter of a near-duplicate page; empty if the page is not one."""
    known: int = 0
    """Known to this gate, or twice on the page. What it does not know the frontier still may."""

    def refuse(self, why: str, count: int = 1, example: str = "") -> None:
        """`example`: a URL, for limits and traps, which are always reported."""
        self.refused[why] = self.refused.get(why, 0) + count
        if example and why not in self.examples:
            self.examples[why] = example

    def add(self, more: "GateResult") -> None:
        """Merge another result of the same page."""
        self.tasks += more.tasks
        self.known += more.known
        self.examples = {**more.examples, **self.examples}
        for why, count in more.refused.items():
            self.refuse(why, count)


class Explanation(msgspec.Struct, frozen=True):
    """Why a link would or would not be admitted."""

    verdict: str
    """"admitted", "known", or "refused: " and the reason."""
    url: str
    identity: str = ""

    def __str__(self) -> str:
        return f"{self.verdict}  {self.identity or self.url}"


class GatePage:
    """The state of one page while its links pass the gate."""

    __slots__ = ("alike", "depth", "fresh", "now", "repeats", "result", "site", "url")

    def __init__(
        self, url: str, depth: int, now: Moment, site: str, alike: bool = False, repeats: bool = False
    ) -> None:
        self.site = site
        """Inherited by the page's tasks unless its handler sets another."""
        self.alike = alike
        self.repeats = repeats
        self.url = url
        self.depth = depth
        self.now = now
        self.result = GateResult()
        self.fresh: set[int] = set()
        """Fingerprints of this page's new tasks: not confirmed yet, but duplicates within the page."""

    def add(self, task: Task) -> None:
        self.fresh.add(task.fingerprint)
        self.result.tasks.append(task)

"""What comes out of the gate."""

import msgspec

from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules.urls import Address, read


class CutLink(msgspec.Struct, frozen=True):
    """A link that a limit or a trap left out, for the ledger: so that `trace` can tell where it ended."""

    url: str
    route: str
    fingerprint: int
    lane: str
    why: str
    depth: int


class Sifted(msgspec.Struct):
    """What came through, what did not and why, and how many were known already."""

    tasks: list[Task] = []
    refused: dict[str, int] = {}
    """Reason -> count."""
    examples: dict[str, str] = {}
    """Of what is never left out in silence: its name -> a URL."""
    cut: list[CutLink] = []
    """Links that a limit or a trap left out; of very many only some."""
    alike: str = ""
    """The page reads like many others: how that is counted; empty if it does not."""
    known: int = 0
    """Known to this gate, or twice on the page. What it does not know the frontier still may."""

    def refuse(self, why: str, count: int = 1, example: str = "") -> None:
        """With an example if a limit or a trap did it: that is never silent."""
        self.refused[why] = self.refused.get(why, 0) + count
        if example and why not in self.examples:
            self.examples[why] = example

    def add(self, more: "Sifted") -> None:
        """What the same page led to beside."""
        self.tasks += more.tasks
        self.known += more.known
        self.examples = {**more.examples, **self.examples}
        for why, count in more.refused.items():
            self.refuse(why, count)


class Explained(msgspec.Struct, frozen=True):
    """Why a link would or would not be admitted."""

    verdict: str
    """"admitted", "known", or "refused: " and the reason."""
    url: str
    identity: str = ""

    def __str__(self) -> str:
        return f"{self.verdict}  {self.identity or self.url}"


class SiftedPage:
    """One page on its way through the gate."""

    __slots__ = ("alike", "depth", "fresh", "now", "repeats", "sifted", "site", "url")

    def __init__(
        self, url: str, depth: int, now: Moment, site: str, alike: bool = False, repeats: bool = False
    ) -> None:
        self.site = site
        """Whose data the page is: what it leads to is theirs, too, unless its handler says otherwise."""
        self.alike = alike
        self.repeats = repeats
        self.url = url
        self.depth = depth
        self.now = now
        self.sifted = Sifted()
        self.fresh: set[int] = set()
        """Fingerprints of this page's new tasks: not known yet, but not to be made twice."""

    @property
    def host(self) -> str:
        address = read(self.url)
        return address.host if isinstance(address, Address) else ""

    def add(self, task: Task) -> None:
        self.fresh.add(task.fingerprint)
        self.sifted.tasks.append(task)

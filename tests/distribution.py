"""How tests are spread over the processes of `pytest -n`: groups stay together, and waiting is mixed with computing.

pytest-xdist's own `--dist loadgroup` has no effect with pytest 9.2: it writes the group into an attribute of tests that
is not there any more, without an error. Every process started every server then. So the groups go from a process that
has collected to the one that distributes in a file, and a scheduler of ours reads it.

A group is named by `@pytest.mark.xdist_group`. Tests with a fixture of their module or class are one, too: otherwise
each process would set it up anew for each of them.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import mkstemp
from typing import Any, NamedTuple, TypeVar

import pytest

FILE = "groups_file"
LONGEST = ("fleet faults", "dashboard", "rabbitmq", "fleet postgres", "fleet rabbitmq", "cluster", "world", "bench")
"""Groups that take minutes, the longest first. They begin before all others, or the last one would be waited for."""
WAITING = ("tests/e2e/", "tests/web/", "tests/deploy/")
"""Tests that mostly wait, for a server to come back or a lease to run out."""
_SHARED = ("module", "class")
_KEPT = pytest.StashKey[Path]()
T = TypeVar("T")


class Place(NamedTuple):
    """What is known of a test before it runs."""

    name: str
    group: str


def in_order(places: Sequence[Place]) -> list[int]:
    """The indices: long groups, other groups, then single tests that wait, evenly among those that compute."""
    groups = sorted({place.group for place in places if place.group}, key=_rank)
    members: dict[str, list[int]] = {group: [] for group in groups}
    waiting, computing = [], []
    for index, place in enumerate(places):
        if place.group:
            members[place.group].append(index)
        else:
            (waiting if place.name.startswith(WAITING) else computing).append(index)
    return [index for group in groups for index in members[group]] + mixed(waiting, computing)


def mixed(some: Sequence[T], others: Sequence[T]) -> list[T]:
    """Both in their order, each evenly over the whole."""
    spread = [((place + 0.5) / len(each), one) for each in (some, others) for place, one in enumerate(each)]
    return [one for _, one in sorted(spread, key=lambda pair: pair[0])]


def _rank(group: str) -> tuple[int, str]:
    return (LONGEST.index(group) if group in LONGEST else len(LONGEST), group)


def group_of(item: pytest.Item) -> str:
    """Empty: it may run anywhere."""
    mark = item.get_closest_marker("xdist_group")
    if mark is not None:
        return str(mark.args[0])
    found = getattr(item, "_fixtureinfo", None)
    definitions: Iterable[Any] = [] if found is None else (one[-1] for one in found.name2fixturedefs.values() if one)
    return item.nodeid.partition("::")[0] if any(one.scope in _SHARED for one in definitions) else ""


def collected(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process that will run tests: order them, and leave the groups for the one that distributes."""
    told = getattr(config, "workerinput", {})
    if FILE not in told:
        return
    places = [Place(item.nodeid, group_of(item)) for item in items]
    items[:] = [items[index] for index in in_order(places)]
    if told["workerid"] == "gw0":
        Path(told[FILE]).write_text(json.dumps({place.name: place.group for place in places if place.group}))


def tell_file(node: Any) -> None:
    """Before a process starts: where it leaves the groups."""
    node.workerinput[FILE] = str(_groups_file(node.config))


def _groups_file(config: pytest.Config) -> Path:
    if _KEPT not in config.stash:
        handle, name = mkstemp(prefix="trotline-test-groups-")
        os.close(handle)
        config.stash[_KEPT] = Path(name)
        config.add_cleanup(Path(name).unlink)
    return config.stash[_KEPT]


def scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):
        groups: dict[str, str] | None = None

        def _split_scope(self, nodeid: str) -> str:
            if self.groups is None:
                self.groups = json.loads(_groups_file(self.config).read_text())
            return self.groups.get(nodeid, nodeid)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            scope = self._split_scope(self.registered_collections[node][item_index])
            super().mark_test_complete(node, item_index, duration)
            unit = self.assigned_work[node].get(scope)
            if unit is not None and all(unit.values()):
                # The base class adds up all units of a process after every test, also those that are over.
                del self.assigned_work[node][scope]

    # By number of tests: we know better.
    config.option.loadscopereorder = False
    return Grouped(config, log)

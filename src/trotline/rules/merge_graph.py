"""Sources and what connects them: similar texts, shared keys, and what people decided."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from trotline.model.merge import Link, ReviewDecision, Source
from trotline.rules.merge_clusters import Evidence


class Graph:
    def __init__(self, sources: Mapping[int, Source], decisions: Iterable[ReviewDecision]) -> None:
        self.sources = dict(sources)
        self.groups: dict[int, list[int]] = {}
        """Exact key -> sources."""
        self._links: dict[int, set[Link]] = {}
        self._groups_of: dict[int, list[int]] = {}
        self._decisions: dict[int, list[ReviewDecision]] = {}
        for decision in decisions:
            for one in decision[:2]:
                self._decisions.setdefault(one, []).append(decision)

    def add_links(self, links: Iterable[Link]) -> None:
        for link in links:
            self._links.setdefault(link.a, set()).add(link)
            self._links.setdefault(link.b, set()).add(link)

    def add_groups(self, groups: Iterable[tuple[int, list[int]]]) -> None:
        for key, members in groups:
            if key not in self.groups:
                self.groups[key] = members
                for member in members:
                    self._groups_of.setdefault(member, []).append(key)

    def neighbours(self, ids: Collection[int]) -> set[int]:
        """Known or not."""
        around = _Around(self)
        return {other for one in self._connected().intersection(ids) for other in around.of(one)}

    def unconnected(self) -> list[Source]:
        """Nothing is known that connects these with others."""
        connected = self._connected()
        return [source for one, source in self.sources.items() if one not in connected]

    def parts(self) -> Iterator[list[int]]:
        """The connected parts of the others."""
        left = dict.fromkeys(self.sources.keys() & self._connected())
        around = _Around(self)
        while left:
            first, _ = left.popitem()
            part, waiting = [first], [first]
            while waiting:
                for other in around.of(waiting.pop()):
                    if other in left:
                        del left[other]
                        part.append(other)
                        waiting.append(other)
            yield part

    def evidence(self, part: Sequence[int]) -> Evidence:
        keys = {key for one in part for key in self._groups_of.get(one, ())}
        return Evidence(
            sources={one: self.sources[one] for one in part},
            groups={key: [one for one in self.groups[key] if one in self.sources] for key in keys},
            links={link for one in part for link in self._links.get(one, ())},
            decisions={decision for one in part for decision in self._decisions.get(one, ())},
        )

    def _connected(self) -> set[int]:
        return self._links.keys() | self._groups_of.keys() | self._decisions.keys()

    def linked(self, one: int) -> Iterator[int]:
        for link in self._links.get(one, ()):
            yield link.b if link.a == one else link.a
        for decision in self._decisions.get(one, ()):
            if decision.same:
                yield decision.b if decision.a == one else decision.a

    def keys_of(self, one: int) -> Sequence[int]:
        return self._groups_of.get(one, ())


class _Around:
    """The neighbours of one source after the other. A group is named once: each of its members would name all of it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._named: set[int] = set()

    def of(self, one: int) -> Iterator[int]:
        yield from self._graph.linked(one)
        for key in self._graph.keys_of(one):
            if key not in self._named:
                self._named.add(key)
                yield from self._graph.groups[key]

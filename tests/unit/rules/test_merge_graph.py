"""Sources that are connected are found, and a group that many share is gone through once."""

from collections.abc import Iterator

from trotline.model.merge import Link, ReviewDecision, Source
from trotline.rules.merge_graph import Graph
from trotline.rules.merge_keys import EXACT


def source(number: int) -> Source:
    return Source(number, "s", "product", f"k{number}", "", 1.0, 1.0, 0, "{}", merged=False)


def graph_of(number: int) -> Graph:
    return Graph({one: source(one) for one in range(number)}, [ReviewDecision(0, 1, True), ReviewDecision(1, 2, False)])


def test_links_groups_and_decisions_connect() -> None:
    graph = graph_of(8)
    graph.add_links([Link(1, 3, 0.9)])
    graph.add_groups([(4 | EXACT, [3, 4]), (8 | EXACT, [6, 7])])
    assert sorted(sorted(part) for part in graph.parts()) == [[0, 1, 3, 4], [2], [6, 7]]
    assert [one.id for one in graph.unconnected()] == [5]
    assert graph.neighbours([1, 6]) == {0, 3, 6, 7}


class Counted(list[int]):
    read = 0

    def __iter__(self) -> Iterator[int]:
        for one in super().__iter__():
            Counted.read += 1
            yield one


def test_a_group_of_many_is_read_once_and_not_by_each_of_its_members() -> None:
    graph = graph_of(1_000)
    graph.add_groups((16 * key | EXACT, Counted(range(1_000))) for key in range(1, 6))
    Counted.read = 0
    assert [len(part) for part in graph.parts()] == [1_000]
    assert len(graph.neighbours(range(1_000))) == 1_000
    assert Counted.read == 2 * 5 * 1_000

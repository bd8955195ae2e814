"""One step of a merge: some changed records in, the change of the things out.

The result of many steps is that of one, in any order: keys and links of a source depend on records and groups alone,
and all sources that are connected with a changed one are divided into things anew (`rules.merge_clusters`).
"""

from collections.abc import Sequence

import msgspec

from trotline.model.merge import AuthorKey, Link, MergeChange, MergeRule, Source, Thing
from trotline.ports.merge_store import MergeStore
from trotline.rules.merge_clusters import clusters
from trotline.rules.merge_compare import Comparison
from trotline.rules.merge_fields import thing_of
from trotline.rules.merge_graph import Graph
from trotline.rules.merge_groups import Groups
from trotline.rules.merge_keys import ALIKE, keys_of, kind_of_key


class Step(msgspec.Struct, frozen=True, kw_only=True):
    change: MergeChange
    crowded: frozenset[int]
    """Keys that too many records share: not used."""
    without_text: int
    """Records without a text to compare."""
    cut_texts: int
    """Records of whose text only the beginning is compared."""
    pairs: int
    """Compared;"""
    unlike: int
    """and those of them whose spellings were not."""


class Stepper:
    """Reads what a step needs from the store, and decides. Writes nothing."""

    def __init__(self, store: MergeStore, rule: MergeRule, author: AuthorKey | None = None) -> None:
        self._store = store
        self._rule = rule
        self._author = author

    async def step(self, version: int, changed: Sequence[Source], gone: Sequence[int]) -> Step:
        groups = await self._groups(changed, gone)
        compared = Comparison(self._rule)
        links = await self._links(groups, compared)
        graph = await self._graph(groups, links)
        alone, things = self._divided(graph, compared)
        change = MergeChange(
            version=version,
            rule=self._rule.fingerprint,
            sources=tuple(groups.touched.values()),
            gone=tuple(gone),
            keys=groups.keys,
            links=tuple(links),
            things=tuple(things),
            alone=tuple(alone),
        )
        blind = len(groups.touched) - len(groups.texts) if "text" in self._rule.by else 0
        return Step(
            change=change,
            crowded=groups.crowded,
            without_text=blind,
            cut_texts=groups.cut,
            pairs=compared.pairs,
            unlike=compared.unlike,
        )

    async def _groups(self, changed: Sequence[Source], gone: Sequence[int]) -> Groups:
        """Who shares a key with the changed records. If a group becomes too crowded, or is so no more, its members
        count as changed, too: whether it is used is a question of their links."""
        groups = Groups(self._rule, gone)
        fresh, known = list(changed), list(gone)
        while True:
            for source in fresh:
                groups.touch(source, keys_of(source, self._rule, self._author))
            known += [source.id for source in fresh if source.merged]
            groups.had(await self._store.keys(known) if known else {})
            asked = groups.uncounted()
            groups.counted(asked, await self._store.count(asked) if asked else {})
            crossing = groups.crossing()
            if not crossing:
                break
            groups.listed(await self._store.members(crossing))
            more = groups.members_of(crossing) - groups.touched.keys() - groups.gone
            if not more:
                break
            fresh, known = await self._store.sources(more), []
        to_list = groups.to_list()
        groups.listed(await self._store.members(to_list) if to_list else {})
        return groups

    async def _links(self, groups: Groups, compared: Comparison) -> list[Link]:
        if "text" not in self._rule.by:
            return []
        others = groups.others()
        for source in groups.touched.values():
            compared.add(source, groups.texts.get(source.id))
        sites = {source.id: source.site for source in groups.touched.values()}
        for source in await self._store.sources(others) if others else ():
            compared.add(source)
            sites[source.id] = source.site
        return compared.links(groups.candidates(sites))

    async def _graph(self, groups: Groups, links: Sequence[Link]) -> Graph:
        """The changed sources, and all that are connected with them, now or before."""
        store, rule = self._store, self._rule
        replaced = groups.touched.keys() | groups.gone
        graph = Graph(groups.touched, await store.decisions())
        graph.add_links(link for link in links if link.score >= rule.merge_from)
        graph.add_groups(groups.exact())
        known = [*groups.gone, *(one.id for one in groups.touched.values() if one.merged)]
        before = await store.links(known) if known else []
        former = {one for link in before for one in link[:2]} | groups.former_mates() | graph.neighbours(groups.gone)
        wanted = (graph.neighbours(groups.touched) | former) - replaced
        while wanted:
            found = {source.id: source for source in await store.sources(wanted)}
            graph.sources.update(found)
            stored = await store.links(found)
            graph.add_links(
                link
                for link in stored
                if link.score >= rule.merge_from and link.a not in replaced and link.b not in replaced
            )
            keys = {key for some in (await store.keys(found)).values() for key in some if kind_of_key(key) != ALIKE}
            new = [key for key in keys if key not in graph.groups and not groups.concerns(key)]
            counts = await store.count(new) if new else {}
            few = [key for key, number in counts.items() if 1 < number <= rule.most]
            graph.add_groups((await store.members(few)).items() if few else ())
            wanted = graph.neighbours(found) - graph.sources.keys() - groups.gone
        return graph

    def _divided(self, graph: Graph, compared: Comparison) -> tuple[list[Source], list[Thing]]:
        """Sources that are a thing by themselves, and things of several."""
        alone = graph.unconnected()
        things = []
        for part in graph.parts():
            evidence = graph.evidence(part)
            for source in evidence.sources.values():
                compared.add(source)
            for members in clusters(evidence, self._rule, compared.score):
                sources = [graph.sources[one] for one in members]
                if len(sources) > 1:
                    things.append(thing_of(sources, self._rule))
                else:
                    alone += sources
        return alone, things

"""An archive that is read while its writer rolls: nothing is missed, and nothing whole is called damaged.

The roll is cut into its steps. Before each call that a reader makes to the store, the roll goes from each of its steps
to each later one: every way in which one pause of the reader can fall.
"""

from itertools import combinations

import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.ports.object_store import StoredObject
from trotline.testing.archive_contract import ALL, NOON, capture

A, B = b"the same body " * 100, b"another body " * 100
BODIES = {1: A, 2: A, 3: B, 4: B, 5: A}
BATCHES = ((1,), (2, 3), (4, 5))
"""2 and 5 are revisits of 1, and 4 of 3: each body is in an earlier object than its revisits."""
LATER = 6
"""What the writer has written after the roll."""
STEPS = 7


class Store:
    """The objects of a writer at each step of its roll; moves on before a call, and refuses to be written."""

    def __init__(self, steps: list[dict[str, bytes]], first: int, then: int, before: int) -> None:
        self._steps = steps
        self._first, self._then, self._before = first, then, before
        self.calls = 0

    def _now(self) -> dict[str, bytes]:
        self.calls += 1
        return self._steps[self._first if self.calls <= self._before else self._then]

    async def get(self, name, start=0, length=None):
        data = self._now()[name]
        return data[start:] if length is None else data[start : start + length]

    async def listed(self, prefix):
        place = f"{prefix}/" if prefix else ""
        now = self._now()
        return [StoredObject(name, len(now[name]), NOON) for name in sorted(now) if name.startswith(place)]


async def content(store):
    return {one.name: await store.get(one.name) for one in await store.listed("")}


@pytest.fixture
async def steps(tmp_path):
    """Small objects; the file; its index; the small objects go one by one; the writer goes on."""
    store = FolderStore(tmp_path)
    archive = ObjectArchive(store, "w", roll_size=1 << 30)
    for batch in BATCHES:
        await archive.write([capture(number, body=BODIES[number]) for number in batch])
    small = await content(store)
    archive._roll()
    await archive._rolling
    rolled = await content(store)
    await archive.write([capture(LATER)])
    [later] = [(name, data) for name, data in (await content(store)).items() if name not in rolled]
    [file] = [name for name in rolled if name.endswith(".warc.gz")]
    found = [small, small | {file: rolled[file]}, small | rolled]
    for name in sorted(small):
        found.append({key: data for key, data in found[-1].items() if key != name})
    found.append(found[-1] | dict([later]))
    assert found[-2] == rolled
    assert len(found) == STEPS
    return found


async def entries(archive, skipped):
    return {int(entry.id, 16): None async for entry in archive.entries(ALL, skipped)}


async def pages(archive, skipped):
    return {int(page.entry.id, 16): page.answer.body async for page in archive.pages(ALL, skipped=skipped)}


async def units(archive, skipped):
    return {
        int(page.entry.id, 16): page.answer.body
        for unit in await archive.units(ALL)
        async for page in archive.pages(ALL, units=[unit], skipped=skipped)
    }


async def shared(archive, skipped):
    same = await archive.units(ALL)
    parts = [[page async for page in archive.pages(ALL, part, 2, same, skipped)] for part in range(2)]
    return {int(page.entry.id, 16): page.answer.body for part in parts for page in part}


async def each(archive, skipped):
    return {int(entry.id, 16): (await archive.read(entry)).answer.body async for entry in archive.entries(ALL, skipped)}


@pytest.mark.parametrize("reading", [entries, pages, units, shared, each])
async def test_what_is_read_is_whole_and_complete(steps, reading):
    for first, then in combinations(range(STEPS), 2):
        before, calls = 0, 1
        while before < calls:
            store, damages = Store(steps, first, then, before), []
            found = await reading(ObjectArchive(store), damages.append)
            where = f"from step {first} to {then} before call {before + 1}"
            assert not damages, where
            assert BODIES.keys() <= found.keys(), where
            for number, body in found.items():
                assert body in (None, BODIES.get(number, capture(LATER).body)), where
            before, calls = before + 1, store.calls


async def test_nothing_is_called_damaged_by_a_check(steps):
    for first, then in combinations(range(STEPS), 2):
        before, calls = 0, 1
        while before < calls:
            store = Store(steps, first, then, before)
            checked = await ObjectArchive(store).check()
            assert not checked.damages, f"from step {first} to {then} before call {before + 1}"
            assert checked.captures >= len(BODIES)
            before, calls = before + 1, store.calls


@pytest.mark.parametrize("gone", range(2))
async def test_a_revisit_whose_body_is_gone_from_everywhere_is_damage(steps, gone):
    """The first object is lost, and the file that was rolled of it too."""
    [lost] = [name for name in steps[0] if name.endswith(f"{gone}.warc.gz")]
    only = [{name: data for name, data in steps[0].items() if name != lost}]
    damages = []
    found = await pages(ObjectArchive(Store(only, 0, 0, 0)), damages.append)
    broken = {0: {2, 5}, 1: {4}}[gone]
    assert {int(damage.url.rpartition("/")[2]) for damage in damages} == broken
    assert not broken & found.keys()
    checked = await ObjectArchive(Store(only, 0, 0, 0)).check()
    assert {int(damage.what.split("/p/")[1].split()[0]) for damage in checked.damages} == broken

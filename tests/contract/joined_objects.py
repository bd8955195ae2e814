"""What every `ObjectStore` promises of `join`."""

import pytest

from trotline.ports.object_store import ObjectStore


async def objects_are_joined(store: ObjectStore) -> None:
    for number in range(3):
        await store.put(f"open/w/{number}", b"%d" % number * 100_000)
    await store.join("warc/all", ["open/w/2", "open/w/0", "open/w/1"])
    assert await store.get("warc/all") == b"2" * 100_000 + b"0" * 100_000 + b"1" * 100_000
    # Readers ask for pieces, and see the end by a short one.
    assert [await store.get("warc/all", at, 10) for at in (299_995, 300_000, 300_001)] == [b"1" * 5, b"", b""]
    with pytest.raises(KeyError):
        await store.join("warc/other", ["open/w/0", "open/w/9"])
    assert [one.name for one in await store.listed("warc")] == ["warc/all"]
    assert len(await store.listed("open")) == 3

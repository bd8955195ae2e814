"""Notes in Redis: what a lost reply and another program may do to them."""

from math import nan

import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench

from trotline.adapters.redis.console import RedisConsole
from trotline.adapters.redis.lua_layouts import NOTE
from trotline.adapters.redis.scripts import script
from trotline.model.note import Note
from trotline.testing.frontier_contract import Client


def console_of(client: Client) -> RedisConsole:
    console = client.opened.console
    assert isinstance(console, RedisConsole)
    return console


async def test_a_write_that_is_repeated_after_a_lost_reply_has_won() -> None:
    bench = RedisBench()
    frontier = await bench.open()
    shard = console_of(frontier)._shards[0]

    answers = [
        await shard.server.run(script("write_note"), shard.key, "summary", data, 0, call)
        for data, call in ((b"one", "a.1"), (b"one", "a.1"), (b"one", "b.1"))
    ]

    assert answers == [1, 1, 0]
    assert await frontier.read_notes(["summary"]) == [Note(b"one", 1)]
    await bench.close()


async def test_all_notes_of_a_sharded_job_are_in_its_first_shard() -> None:
    bench = ShardedBench()
    frontier = await bench.open()
    for number in range(20):
        assert await frontier.write_note(f"series/{number}", b"x", 0)

    kept = [await shard.server.ask("HLEN", f"{shard.prefix}notes") for shard in console_of(frontier)._shards]

    assert kept == [20, *[0] * (len(kept) - 1)]
    assert len(kept) > 1
    await bench.close()


DAMAGED = [b"", b"short", NOTE.pack(1.0, 2**32 - 1) + b"cut", NOTE.pack(nan, 0), NOTE.pack(-1.0, 0)]


@pytest.mark.parametrize("damaged", DAMAGED)
async def test_what_another_program_wrote_over_a_note_is_replaced_by_its_next_writer(damaged: bytes) -> None:
    bench = RedisBench()
    frontier = await bench.open()
    shard = console_of(frontier)._shards[0]
    await shard.server.ask("HSET", f"{shard.prefix}notes", "summary", damaged)

    assert await frontier.read_notes(["summary"]) == [None]
    assert await frontier.write_note("summary", b"new", 0)

    assert await frontier.read_notes(["summary"]) == [Note(b"new", 1)]
    await bench.close()

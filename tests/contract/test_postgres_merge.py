"""A merge in PostgreSQL gives the same things as one in SQLite, also in small steps and by the command."""

import json
import sqlite3

from bench import merge_held_out, merge_shops
from bench.merge import store
from tests.contract.postgres_servers import ask

from trotline.adapters.postgres.sink import PostgresSink
from trotline.commands.merge import MergePlan, merge
from trotline.commands.merge_decisions import review, show, split


async def test_both_databases_hold_the_same_things(anywhere, tmp_path):
    records = [*merge_shops.shops(50, seed=5).records, *merge_held_out.shops(30, seed=5).records]
    sink = PostgresSink(anywhere)
    await sink.write(records)
    await sink.close()
    await store(tmp_path / "rows.db", records)
    local = MergePlan(sink=f"sqlite:{tmp_path / 'rows.db'}")
    remote = MergePlan(sink=anywhere, at_once=30)

    expected, report = await merge(local), await merge(remote)

    assert expected.after == report.after
    assert report.after.merged > 20
    connection = sqlite3.connect(tmp_path / "rows.db")
    things = {row[0]: (json.loads(row[1]), json.loads(row[2])) for row in connection.execute(_THINGS)}
    connection.close()
    found = await ask(anywhere, "SELECT id, data::text, provenance::text FROM {s}.things")
    assert things == {name: (json.loads(data), json.loads(whose)) for name, data, whose in found}
    assert 0 == (await merge(remote)).read
    # Undone, it stays undone.
    [thing, *_] = [name for name, _, whose in found if whose != "{}"]
    assert 2 == len((await show(anywhere, thing)).sources)
    assert report.after.things + 1 == (await split(remote, thing)).after.things == (await merge(remote)).after.things
    pairs, of_this_rule = await review(remote, 1_000)
    assert (len(pairs), of_this_rule) == (report.after.review, True)


_THINGS = "SELECT id, data, provenance FROM things"

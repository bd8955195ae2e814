"""`trotline merge`: its quality against the truth, and the same result in any order, in any steps and after kills."""

import asyncio
import json
import random
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from bench import merge_held_out, merge_shops
from bench.merge import measured, quality, store
from click.testing import CliRunner

from trotline.adapters.sqlite.merge_store import SqliteMergeStore
from trotline.cli.merge import command
from trotline.commands.merge import MergePlan, dry_run, merge
from trotline.errors import TrotlineError
from trotline.model.merge import MergeRule
from trotline.model.record import Record
from trotline.rules import merge_text

TABLES = (
    "SELECT id, kind, data, provenance, sources, sites, seen_at FROM things ORDER BY id",
    "SELECT id, site, kind, key, seen_at, rule, thing FROM merge_sources ORDER BY id",
    "SELECT key, source FROM merge_keys ORDER BY key, source",
    "SELECT a, b, score FROM merge_links ORDER BY a, b",
)


def state(path):
    connection = sqlite3.connect(path)
    found = [connection.execute(question).fetchall() for question in TABLES]
    connection.close()
    return found


def same_first_sight(path):
    """When a row was first stored is part of it: in another order these times differ, and with them the ids."""
    connection = sqlite3.connect(path)
    connection.execute("UPDATE records SET first_seen_at = 1.0")
    connection.commit()
    connection.close()


def hostile_records(number):
    """Texts of many different words, whose three-letter shingles are the same; and large data with ids of their own."""
    chance = random.Random(1)

    def text():
        return " ".join("".join(chance.choice("ab") for _ in range(9)) for _ in range(60))

    for one in range(number):
        beside = {name: text() for name in merge_text.BESIDE_THE_NAME}
        data = {"title": f"{one // 100 + 2}x {text()}", "asin": f"{one}", "rows": list(range(1_000)), **beside}
        yield Record(kind="product", key=str(one), data=data, url="", site=f"s{one % 2}", seen_at=1.0)


def test_long_texts_and_their_many_words_are_counted_and_take_no_minutes(tmp_path):
    """Without bounds, two hundred of them took a minute and more."""
    path = tmp_path / "rows.db"
    asyncio.run(store(path, list(hostile_records(200))))
    started = time.process_time()
    result = CliRunner().invoke(command, ["--sink", f"sqlite:{path}", "--quiet"])
    assert time.process_time() - started < 20
    assert result.exit_code == 0, result.output
    assert "long       200 records with texts of more than 500 characters (2,000 with the fields" in result.output
    assert re.search(r"unlike +\d,\d{3} pairs of texts with more than 16 other words on each side", result.output)


@pytest.mark.slow("1,600 records")
@pytest.mark.parametrize("rig", [merge_shops.shops, merge_held_out.shops])
async def test_two_shops_are_merged_with_precision_and_recall_of_98_percent(rig, tmp_path):
    shops = rig(800, seed=3)
    found, report = await measured(shops, tmp_path / "rows.db")
    print(f"precision {found.precision:.4f} recall {found.recall:.4f}")
    assert found.precision >= 0.98, found.wrong
    assert found.recall >= 0.98, found.missed
    assert report.after.things == 1600 - report.after.merged


async def test_any_order_and_any_steps_give_the_same_things(tmp_path):
    records = [*merge_shops.shops(60, seed=5).records, *merge_held_out.shops(40, seed=5).records]
    whole = tmp_path / "whole.db"
    await store(whole, records)
    same_first_sight(whole)
    await merge(MergePlan(sink=f"sqlite:{whole}"))
    for seed, at_once in ((1, 7), (2, 31)):
        mixed = tmp_path / f"mixed{seed}.db"
        shuffled = random.Random(seed).sample(records, len(records))
        for start in range(0, len(shuffled), 50):
            # Merged while the crawl goes on: each time only what is new.
            await store(mixed, shuffled[start : start + 50])
            same_first_sight(mixed)
            await merge(MergePlan(sink=f"sqlite:{mixed}", at_once=at_once))
        assert state(whole) == state(mixed)


async def test_changed_and_removed_records_leave_what_a_merge_from_scratch_gives(tmp_path):
    chance = random.Random(4)
    records = merge_shops.shops(40, seed=6).records
    # Crowded keys come and go, too.
    rule = MergeRule(by=("key", "content", "ids", "text"), most=4, most_alike=3, within_site=True)
    path = tmp_path / "rows.db"
    await store(path, records)
    await merge(MergePlan(sink=f"sqlite:{path}", rule=rule, at_once=11))
    for turn in range(6):
        changed = [
            Record(
                kind=old.kind,
                key=old.key,
                site=old.site,
                url=old.url,
                data={
                    **old.data,
                    "title": chance.choice(records).data["title"],
                    "ean": chance.choice(["", "4006381333931"]),
                },
                seen_at=old.seen_at + 1000 * (turn + 1),
            )
            for old in chance.sample(records, 8)
        ]
        await store(path, changed)
        connection = sqlite3.connect(path)
        gone = connection.execute("SELECT rowid FROM records").fetchall()
        connection.executemany("DELETE FROM records WHERE rowid = ?", chance.sample(gone, 3))
        connection.execute("UPDATE records SET first_seen_at = 1.0")
        connection.commit()
        await merge(MergePlan(sink=f"sqlite:{path}", rule=rule, at_once=5))
        found = state(path)
        for table in ("things", "merge_sources", "merge_keys", "merge_links", "merge_state"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DROP VIEW merged")
        connection.commit()
        connection.close()
        await merge(MergePlan(sink=f"sqlite:{path}", rule=rule))
        assert found == state(path), f"turn {turn}"


async def test_a_second_merge_reads_and_writes_nothing(tmp_path):
    path = tmp_path / "rows.db"
    await store(path, merge_shops.shops(30).records)
    await merge(MergePlan(sink=f"sqlite:{path}"))
    before = state(path)
    version = await _version(path)
    report = await merge(MergePlan(sink=f"sqlite:{path}"))
    assert (0, 0) == (report.read, report.pairs)
    assert before == state(path)
    assert version == await _version(path)


async def test_a_dry_run_says_the_same_and_stores_nothing(tmp_path):
    path = tmp_path / "rows.db"
    await store(path, merge_shops.shops(30).records)
    planned = await dry_run(MergePlan(sink=f"sqlite:{path}"))
    connection = sqlite3.connect(path)
    assert not connection.execute(
        "SELECT name FROM sqlite_master WHERE name LIKE 'merge%' OR name = 'things'"
    ).fetchall()
    connection.close()
    report = await merge(MergePlan(sink=f"sqlite:{path}"))
    assert planned.dry_run
    assert planned.after == report.after


async def test_two_merges_at_once_do_no_harm(tmp_path):
    alone, both = tmp_path / "alone.db", tmp_path / "both.db"
    for path in (alone, both):
        await store(path, merge_shops.shops(60).records)
    await merge(MergePlan(sink=f"sqlite:{alone}"))
    plan = MergePlan(sink=f"sqlite:{both}", at_once=10)
    await asyncio.gather(*(asyncio.to_thread(lambda: asyncio.run(merge(plan))) for _ in range(2)))
    assert state(alone) == state(both)


@pytest.mark.slow("processes are killed")
async def test_killed_merges_end_with_the_same_things(tmp_path):
    records = merge_shops.shops(300, seed=9).records
    alone, killed = tmp_path / "alone.db", tmp_path / "killed.db"
    for path in (alone, killed):
        await store(path, records)
    await merge(MergePlan(sink=f"sqlite:{alone}"))
    assert _killed(5, f"sqlite:{killed}")
    await merge(MergePlan(sink=f"sqlite:{killed}"))
    assert state(alone) == state(killed)


def _killed(times, sink):
    """How many processes were killed while they merged, each after some of its steps."""
    code = (
        "import asyncio, sys\nfrom trotline.commands.merge import MergePlan, merge\n"
        "asyncio.run(merge(MergePlan(sink=sys.argv[1], at_once=20), lambda report: print('step', flush=True)))"
    )
    chance = random.Random(1)
    kills = 0
    for _ in range(times):
        process = subprocess.Popen([sys.executable, "-c", code, sink], stdout=subprocess.PIPE, text=True)
        for _ in range(chance.randint(1, 5)):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.stdout.close()
        kills += process.wait() == -signal.SIGKILL
    return kills


SPIDER = """
from trotline import Spider

shops = Spider("shops")

@shops.merge(by=["url"], prefer={"price": "site:b"})
def same(record):
    return record.data.get("code")

@shops.page(seeds=["https://shops.example/"])
def page(page):
    yield {}
"""


def run(folder, *args):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(command, args)
    return done.output + (str(done.exception) if isinstance(done.exception, TrotlineError) else "")


def test_the_spiders_own_rule_merges_shows_splits_and_joins(tmp_path):
    (tmp_path / "shops.py").write_text(SPIDER)

    def record(site, key, code, price):
        data = {"code": code, "price": price}
        return Record(kind="p", key=key, data=data, url=f"https://{site}.example/{key}", site=site, seen_at=price)

    records = [record("a", "1", "x", 9), record("b", "2", "x", 5), record("b", "3", "y", 7)]
    asyncio.run(store(tmp_path / "shops.db", records))
    after = json.loads(run(tmp_path, "shops.py", "--json"))["after"]
    assert (2, 1) == (after["things"], after["merged"])
    connection = sqlite3.connect(tmp_path / "shops.db")
    [row] = connection.execute("SELECT _thing, price, _sites FROM merged_p WHERE _sources = 2").fetchall()
    assert (5, "a, b") == row[1:]
    shown = run(tmp_path, "shops.py", "--show", row[0])
    assert "price  5   <- b/2" in shown
    assert "source     a/1" in shown

    # Another rule would merge everything again: it must be asked for.
    assert "another rule" in run(tmp_path, "shops", "--split", row[0])

    split = run(tmp_path, "shops.py", "--split", row[0])
    assert "things     3 (+1)" in split
    assert "undo       trotline merge shops.py --same " in split
    assert "things     3, of 3 records" in run(tmp_path, "shops.py")
    a, b = (
        f"{one & (1 << 64) - 1:016x}" for (one,) in connection.execute("SELECT id FROM merge_sources WHERE key < '3'")
    )
    connection.close()
    assert "things     2 (-1)" in run(tmp_path, "shops.py", "--same", f"{a}-{b}")
    assert f"no record that was merged has the id {'1' * 16}" in run(tmp_path, "shops.py", "--same", f"{'1' * 16}-{b}")
    assert "has a merge rule of its own: --by would not be used" in run(tmp_path, "shops.py", "--by", "text")


def test_what_cannot_be_merged_is_refused_with_the_remedy(tmp_path):
    for args, words in (
        (("nowhere",), "no such file"),
        (("x", "--by", "colour"), "cannot merge by 'colour'"),
        (("x", "--prefer", "price"), "write FIELD=HOW"),
        (("x", "--prefer", "price=cheapest"), "'cheapest' is not known"),
        (("x", "--merge-from", "0.5", "--review-from", "0.7"), "cannot be used"),
        (("--sink", "jsonl:rows.jsonl"), "cannot be merged where they are"),
        (("x", "--same", "abc"), "is not the name of a pair"),
        (("x", "--source", "a/1"), "belongs to --split"),
        (("x", "--limit", "5"), "--limit belongs to --review"),
        (("x", "--review", "--kind", "p"), "--kind has no effect on --review"),
        (("x", "--show", "abc", "--text", "name"), "--text has no effect on --show"),
    ):
        assert words in run(tmp_path, *args), args


def test_the_review_list_shows_pages_and_never_rounds_a_similarity_up(tmp_path):
    def record(site, title):
        url = f"https://{site}.example/1"
        return Record(kind="p", key="1", data={"title": title}, url=url, site=site, seen_at=1.0)

    records = [record("a", "Espresso Machine EM 300 silver"), record("b", "EM-300 Espresso Machine")]
    asyncio.run(store(tmp_path / "all.db", records))
    sink = f"sqlite:{tmp_path / 'all.db'}"
    merged = run(tmp_path, "--sink", sink)
    assert f"review     1 pair to decide: trotline merge --sink {sink} --review" in merged
    listed = run(tmp_path, "--sink", sink, "--review")
    assert "similarity 0.79\n" in listed
    assert "a/1  Espresso Machine EM 300 silver  https://a.example/1" in listed
    assert f"decide: trotline merge --sink {sink} --same PAIR (or --different PAIR)" in listed
    pair = next(word for word in listed.split() if len(word) == 33)
    assert f"undo       trotline merge --sink {sink} --different {pair}" in run(
        tmp_path, "--sink", sink, "--same", pair
    )


def test_a_pair_is_decided_with_the_options_of_the_merge_as_every_suggestion_says(tmp_path):
    records = [
        Record(kind="p", key="1", data={"code": title}, url=f"https://{site}.example/1", site=site, seen_at=1.0)
        for site, title in (("a", "Espresso Machine EM 300 silver"), ("b", "EM-300 Espresso Machine"))
    ]
    asyncio.run(store(tmp_path / "shops.db", records))
    rule = ("--by", "ids,text", "--text", "code", "--prefer", "code=most frequent", "--within-site")
    merge_as_typed = "trotline merge shops --by ids,text --text code --prefer 'code=most frequent' --within-site"
    assert f"to decide: {merge_as_typed} --review" in run(tmp_path, "shops", *rule)

    other = run(tmp_path, "shops", "--review")
    assert "with the options of the merge (--by, --prefer, ...) or the spider's file" in other
    assert "another rule" in other
    listed = run(tmp_path, "shops", *rule, "--review")
    assert f"decide: {merge_as_typed} --same PAIR (or --different PAIR)" in listed
    pair = next(word for word in listed.split() if len(word) == 33)
    assert "another rule" in run(tmp_path, "shops", "--same", pair)
    assert f"undo       {merge_as_typed} --different {pair}" in run(tmp_path, "shops", *rule, "--same", pair)
    assert "no pair is to be decided" in run(tmp_path, "shops", "--review")


def test_before_the_first_merge_every_look_and_decision_names_it(tmp_path):
    def record(site, title):
        url = f"https://{site}.example/1"
        return Record(kind="p", key="1", data={"label": title}, url=url, site=site, seen_at=1.0)

    records = [record("a", "Espresso Machine EM 300 silver"), record("b", "EM-300 Espresso Machine")]
    asyncio.run(store(tmp_path / "shop.db", records))
    rule = ("--text", "label")
    dry = run(tmp_path, "shop", *rule, "--dry-run")
    assert "review     1 pair would be for review\n" in dry
    assert "--review" not in dry
    pair = f"{'1' * 16}-{'2' * 16}"
    for asked in (
        ("--review",),
        ("--review", "--json"),
        ("--same", pair),
        ("--different", pair),
        ("--split", "1" * 16),
    ):
        said = run(tmp_path, "shop", *rule, *asked)
        assert said.endswith("nothing is merged here yet: trotline merge shop --text label"), asked
    assert run(tmp_path, "shop", "--show", "1" * 16).endswith("nothing is merged here yet: trotline merge shop")

    run(tmp_path, "shop", *rule)
    assert "similarity 0.79" in run(tmp_path, "shop", *rule, "--review")


def test_where_there_are_no_records_no_pair_is_to_be_decided(tmp_path):
    asyncio.run(store(tmp_path / "shop.db", []))
    assert "no pair is to be decided" in run(tmp_path, "shop", "--review")


def test_a_pair_is_decided_once_in_a_command(tmp_path):
    def record(site):
        return Record(kind="p", key="1", data={"title": site}, url=f"https://{site}.example/1", site=site, seen_at=1.0)

    asyncio.run(store(tmp_path / "shop.db", [record("a"), record("b")]))
    run(tmp_path, "shop")
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        ids = sorted(one for (one,) in connection.execute("SELECT id FROM merge_sources"))
    connection.close()
    a, b = (f"{one & (1 << 64) - 1:016x}" for one in ids)
    for other in (f"{a}-{b}", f"{b}-{a}"):
        said = run(tmp_path, "shop", "--same", f"{a}-{b}", "--different", other)
        assert f"--same and --different name the same pair, {a}-{b}: give one." in said
    assert "things     2, of 2 records" in run(tmp_path, "shop")
    twice = run(tmp_path, "shop", "--same", f"{a}-{b}", "--same", f"{b}-{a}")
    assert "things     1 (-1)" in twice
    assert twice.count("undo ") == 1


def test_a_decision_may_name_the_kind_of_its_records(tmp_path):
    def record(site):
        return Record(kind="p", key="1", data={"title": site}, url=f"https://{site}.example/1", site=site, seen_at=1.0)

    asyncio.run(store(tmp_path / "shop.db", [record("a"), record("b")]))
    run(tmp_path, "shop", "--kind", "p")
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        ids = sorted(one for (one,) in connection.execute("SELECT id FROM merge_sources"))
    pair = "-".join(f"{one & (1 << 64) - 1:016x}" for one in ids)
    assert "things     1 (-1)" in run(tmp_path, "shop", "--kind", "p", "--same", pair)
    # Killed after the decision was stored, and before the merge.
    connection.execute("UPDATE merge_sources SET rule = 0")
    connection.commit()
    connection.close()
    assert "read       2 new or changed records" in run(tmp_path, "shop", "--kind", "p", "--dry-run")
    assert "things     1, of 2 records" in run(tmp_path, "shop", "--kind", "p")


@pytest.mark.parametrize("place", ["shop", "other"])
def test_what_is_suggested_works_with_the_sink_and_the_rule_that_were_given(tmp_path, place):
    def record(site, title):
        url = f"https://{site}.example/1"
        return Record(kind="p", key="1", data={"label": title}, url=url, site=site, seen_at=1.0)

    records = [record("a", "Espresso Machine EM 300 silver"), record("b", "EM-300 Espresso Machine")]
    asyncio.run(store(tmp_path / f"{place}.db", records))
    typed = ["shop", *(["--sink", "other.db"] if place == "other" else [])]
    rule = ["--text", "label", "--prefer", "label=longest", "--kind", "p", "--review-from", "0.6"]

    def suggested(said, what):
        [line] = [line for line in said.splitlines() if line.startswith(what)]
        words = shlex.split(line.partition("trotline merge ")[2])
        assert words[: len(typed)] == typed
        return words

    listed = run(tmp_path, *suggested(run(tmp_path, *typed, *rule), "review "))
    assert "a/1  Espresso Machine EM 300 silver" in listed
    pair = next(word for word in listed.split() if len(word) == 33)
    same = run(tmp_path, *typed, *rule, "--same", pair)
    assert "things     1 (-1)" in same
    different = run(tmp_path, *suggested(same, "undo "))
    assert "things     2 (+1)" in different
    assert "things     1 (-1)" in run(tmp_path, *suggested(different, "undo "))
    assert f"trotline merge {shlex.join(typed)} --review" in run(tmp_path, *typed, *rule, "--same", "abc")


async def _version(path):
    opened = SqliteMergeStore(path)
    try:
        return await opened.version()
    finally:
        await opened.close()


def test_precision_and_recall_are_those_of_pairs():
    found = quality({("a", "x"), ("b", "y")}, {("a", "x"), ("c", "z"), ("d", "v")})
    assert (0.5, 1 / 3) == found[:2]


@pytest.mark.parametrize("option", [(), ("--dry-run",)])
def test_a_kind_that_no_record_has_is_refused_with_those_there_are(tmp_path, option):
    records = [
        Record(kind=kind, key="1", data={"title": kind}, url=f"https://a.example/{kind}", site="a", seen_at=1.0)
        for kind in ("Product", "Review")
    ]
    asyncio.run(store(tmp_path / "shops.db", records))
    said = run(tmp_path, "shops", "--kind", "Review", "--kind", "Produkt", *option)
    assert "no record is of the kind 'Produkt'" in said
    assert "Did you mean 'Product'? The kinds there are: Product, Review." in said
    assert "no record is of the kind 'zzz'\n  The kinds there are: Product, Review." in run(
        tmp_path, "shops", "--kind", "zzz", *option
    )
    assert "read       1 new" in run(tmp_path, "shops", "--kind", "Product", *option)


def test_a_kind_of_records_to_come_is_no_error_where_there_are_none(tmp_path):
    asyncio.run(store(tmp_path / "shops.db", []))
    assert "no record" not in run(tmp_path, "shops", "--kind", "Product")


@pytest.mark.parametrize("option", [(), ("--dry-run",)])
def test_a_preferred_field_that_no_record_has_is_refused_with_those_there_are(tmp_path, option):
    def record(number):
        data = {"title": f"tea {number}", **({"rare": 1} if number == 1_200 else {})}
        return Record(kind="p", key=f"{number:05}", data=data, url=f"https://a.example/{number}", site="a", seen_at=1.0)

    asyncio.run(store(tmp_path / "shops.db", [record(number) for number in range(1_201)]))
    refused = run(tmp_path, "shops", "--by", "key", "--prefer", "titel=longest", *option)
    assert "no record has the field 'titel' of --prefer" in refused
    assert "Did you mean 'title'? The fields there are: rare, title." in refused
    given = ("--prefer", "rare=newest", "--prefer", "title=longest", "--prefer", "*=newest")
    assert "read       1,201 new" in run(tmp_path, "shops", "--by", "key", *given, *option)


def test_a_preferred_field_of_records_to_come_is_no_error_where_there_are_none(tmp_path):
    asyncio.run(store(tmp_path / "shops.db", []))
    assert "no record" not in run(tmp_path, "shops", "--prefer", "price=newest")

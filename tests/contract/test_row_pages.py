"""Rows of a sink in pages: each once, by kind and by the start of key or URL, in bounded time."""

import asyncio
import base64
import random
import re
import sqlite3

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.postgres_servers import ask, fresh

from trotline.adapters.postgres import row_paging as postgres_pages
from trotline.adapters.postgres.sink_url import parse
from trotline.adapters.sqlite import row_paging
from trotline.config import backends
from trotline.errors import SettingsError, SinkError
from trotline.model.record import Record
from trotline.rules.row_paging import end_of
from trotline.testing.postgres_server import DEBIAN, WHEEL

ODD = ["", " ", "%", "_", "a%", "A", "a", "ab", "aB", "a-b", "ä", "z", "\ud7ff", "\ue000", "\U0010ffff", "'", '"', "\\"]
LONG = "https://shop.example/" + "x" * 3000


def record(key, kind="product", site="shop", url=None, **data):
    return Record(
        kind=kind, key=key, site=site, url=url or f"https://{site}.example/{kind}/{key}", data=data, seen_at=5.0
    )


@pytest.fixture(params=["sqlite", DEBIAN, WHEEL, "collated"])
def place(request, tmp_path, postgres_servers):
    """The URL of an empty sink."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'rows.db'}"
    return fresh(collated(postgres_servers) if request.param == "collated" else postgres_servers.url(request.param))


def collated(postgres_servers):
    """A database whose texts are sorted as in a German dictionary: neither by bytes nor by code points."""
    url = postgres_servers.url(DEBIAN)

    async def create():
        connection = await asyncpg.connect(parse(url).dsn, password=parse(url).password.reveal())
        if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = 'collated'"):
            how = "TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'de' LOCALE 'C.UTF-8'"
            await connection.execute(f"CREATE DATABASE collated {how}")
        await connection.close()

    asyncio.run(create())
    return re.sub(r"/[^/]*$", "/collated", url)


async def store(place, records):
    sink = backends.open_sink(place, "shop-1", 0.0)
    await sink.write(records)
    await sink.close()


async def all_rows(place, kind=None, prefix="", limit=7):
    rows, after, pages = [], "", 0
    while True:
        page = await backends.row_page(place, kind, prefix, after, limit)
        assert len(page.rows) <= limit
        rows += page.rows
        pages += 1
        assert pages < 1000
        if not page.after:
            return rows
        after = page.after


def names(rows):
    found = [row[:3] for row in rows]
    assert len(set(found)) == len(found), "a row comes once"
    return set(found)


async def test_every_row_comes_once_with_all_it_has(place):
    stored = [
        record(f"{n:03}", kind=kind, site=site, b=n, a=[1])
        for n in range(20)
        for kind in ("product", "offer")
        for site in ("one", "two")
    ]
    await store(place, stored)

    for limit in (1, 7, 80, 1000):
        rows = await all_rows(place, limit=limit)
        assert names(rows) == {(each.site, each.kind, each.key) for each in stored}
        first = next(row for row in rows if row[:3] == ("one", "offer", "007"))
        assert (first.url, first.seen_at, first.data) == ("https://one.example/offer/007", 5.0, '{"b":7,"a":[1]}')
    assert names(await all_rows(place, "offer")) == {(e.site, e.kind, e.key) for e in stored if e.kind == "offer"}
    assert await all_rows(place, "nothing") == []


async def test_a_prefix_is_that_of_the_key_or_of_the_url(place):
    stored = [
        *(record(f"T{n}") for n in range(12)),
        *(record(f"{n}", url=f"https://shop.example/tea/{n}?page=2") for n in range(12)),
        record("https://shop.example/tea/9", kind="page", url="https://shop.example/tea/9"),
        record("T1", kind="offer", url="https://other.example/"),
        record("long", url=LONG),
        record("longer", url=LONG + "y"),
    ]
    await store(place, stored)

    assert {row.key for row in await all_rows(place, "product", "T1")} == {"T1", "T10", "T11"}
    assert {row.kind for row in await all_rows(place, None, "T1")} == {"product", "offer"}
    assert len(names(await all_rows(place, None, "https://shop.example/tea/"))) == 13
    assert len(names(await all_rows(place, "product", "https://shop.example/tea/"))) == 12
    assert len(names(await all_rows(place, None, "https://shop.example/tea/9", limit=1))) == 2
    assert {row.key for row in await all_rows(place, None, LONG)} == {"long", "longer"}
    assert {row.key for row in await all_rows(place, None, LONG + "y")} == {"longer"}
    assert await all_rows(place, None, "t1") == []


async def test_odd_keys_and_prefixes_are_text_and_nothing_else(place):
    stored = [record(f"{one}{other}x", url=f"odd:{one}{other}") for one in ODD for other in ODD]
    keys = {each.key for each in stored}
    await store(place, stored)

    for one in ODD:
        found = {row.key for row in await all_rows(place, None, one, limit=50)}
        assert found == {key for key in keys if key.startswith(one)}
    for prefix in ("odd:a", "odd:%", "odd:\U0010ffff"):
        found = {row.url for row in await all_rows(place, "product", prefix, limit=3)}
        assert found == {each.url for each in stored if each.url.startswith(prefix)}
    assert await all_rows(place, "\0", "\0") == await all_rows(place, "'; drop", "\ud800x") == []


async def test_many_records_of_one_page_are_paged(place):
    stored = [record(f"{n}", url="https://shop.example/list", site=f"s{n % 3}") for n in range(100)]
    await store(place, stored)

    assert len(names(await all_rows(place, None, "https://shop.example/li"))) == 100


async def test_rows_that_come_meanwhile_disturb_no_page(place):
    await store(place, [record(f"{n:03}", price=1) for n in range(0, 100, 2)])
    seen, after = [], ""
    chance = random.Random(3)
    for _ in range(100):
        page = await backends.row_page(place, "product", "0", after, 5)
        seen += page.rows
        after = page.after
        if not after:
            break
        await store(place, [record(f"{chance.randrange(100):03}", price=2)])

    assert {f"{n:03}" for n in range(0, 100, 2)} <= {row.key for row in seen}
    assert len({row.key for row in seen}) == len(seen)


FORGED = [
    "x", "====", "bnVsbA", "W10", "e30", "a" * 5000, "ä",
    *(base64.urlsafe_b64encode(text).decode().rstrip("=") for text in (
        b'["k"]', b'["u","x"]', b'["k",1,2,3]', b'["k","a","b",3,1]', b'["x","a"]', b'[[]]', b'["u",1e400]', b'"k"',
    )),
]  # fmt: skip


@pytest.mark.parametrize("after", FORGED)
async def test_a_position_that_is_none_is_refused(place, after):
    await store(place, [record("T1")])

    with pytest.raises(SettingsError, match="not a position"):
        await backends.row_page(place, None, "T", after, 5)


@pytest.mark.parametrize("limit", [-5, 0, 1_000_000])
async def test_a_page_has_from_one_to_a_thousand_rows(place, limit):
    await store(place, [record(f"{n}") for n in range(1_500)])

    page = await backends.row_page(place, None, "", "", limit)

    assert len(page.rows) == (1_000 if limit > 0 else 1)
    assert page.after


async def test_a_place_without_rows_is_an_error_with_a_hint(place):
    with pytest.raises(SinkError, match="no rows") as told:
        await backends.row_page(place, None, "", "", 5)

    assert told.value.hint


async def test_files_cannot_be_paged(tmp_path):
    with pytest.raises(SettingsError, match="only a database"):
        await backends.row_page(f"jsonl:{tmp_path / 'rows.jsonl'}", None, "", "", 5)


async def test_a_search_in_a_file_is_cut_into_bounded_steps(tmp_path, monkeypatch):
    place = f"sqlite:{tmp_path / 'rows.db'}"
    await store(place, [record(f"{n:05}", site=f"s{n % 7}") for n in range(2_000)])
    monkeypatch.setattr(row_paging, "_EXAMINED", 300)
    monkeypatch.setattr(row_paging, "_PAIRS", 3)

    page = await backends.row_page(place, None, "https://s6.example/product/01999", "", 100)
    assert (page.rows, bool(page.after)) == ([], True)

    assert [row.key for row in await all_rows(place, None, "https://s4.example/product/01999")] == ["01999"]
    assert len(names(await all_rows(place, "product", "0000"))) == 10


async def test_keys_of_a_file_are_found_by_their_index(tmp_path):
    place = tmp_path / "rows.db"
    await store(f"sqlite:{place}", [record("T1")])
    with sqlite3.connect(place) as db:
        plans = [
            db.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()[0][3]
            for query in (
                "SELECT * FROM records WHERE site = '' AND kind = '' AND key > 'a' AND key < 'b' ORDER BY key LIMIT 5",
                "SELECT site, kind FROM records WHERE (site, kind) > ('', '') ORDER BY site, kind LIMIT 1",
                "SELECT site FROM records WHERE site > '' ORDER BY site LIMIT 1",
            )
        ]

    assert all("SEARCH" in plan and "INDEX" in plan for plan in plans), plans


async def test_a_search_in_postgresql_uses_an_index(postgres_servers):
    place = fresh(postgres_servers.url(DEBIAN))
    await store(place, [record(f"{n:05}", kind=f"k{n % 3}") for n in range(3_000)])
    await ask(place, "ANALYZE {s}.records")
    plans = await _plans(place, lambda: all_rows(place, "k1", "0101"))
    plans += await _plans(place, lambda: all_rows(place, None, "https://shop.example/product/0101"))

    searches = [plan for plan in plans if "records" in plan]
    assert len(searches) >= 4
    assert all("Seq Scan" not in plan for plan in searches), searches


async def test_a_search_in_postgresql_that_takes_too_long_is_stopped(postgres_servers, monkeypatch):
    place = fresh(postgres_servers.url(DEBIAN))
    await store(place, [record("T1")])
    monkeypatch.setattr(postgres_pages, "SEARCH_WITHIN", 0.2)
    connection = await asyncpg.connect(parse(place).dsn, password=parse(place).password.reveal())
    await connection.execute(f"BEGIN; LOCK TABLE {parse(place).quoted}.records")

    with pytest.raises(SinkError, match="took longer") as told:
        await backends.row_page(place, None, "T", "", 5)

    await connection.close()
    assert "prefix" in told.value.hint


async def _plans(place, search):
    """The plan of every statement of the search."""
    plans = []

    class Explaining(postgres_pages._Search):
        def __init__(self, connection, *rest):
            super().__init__(connection, *rest)
            self._fetch, self._connection = connection, self

        async def fetch(self, query, *values):
            plans.append("\n".join(row[0] for row in await self._fetch.fetch(f"EXPLAIN {query}", *values)))
            return await self._fetch.fetch(query, *values)

        async def fetchrow(self, query, *values):
            return (await self.fetch(query, *values) or [None])[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_pages, "_Search", Explaining)
        await search()
    return plans


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=4), st.text(max_size=4))
def test_the_range_of_a_prefix_has_all_that_start_with_it(prefix, rest):
    def key(text):
        return text.encode("utf-8", "surrogatepass")

    end = end_of(prefix)
    inside = key(prefix) <= key(rest) and (end is None or key(rest) < key(end))

    assert inside == rest.startswith(prefix)
    assert end is None or (key(prefix + rest) < key(end) and not end.startswith(prefix))

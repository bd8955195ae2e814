"""Promises of the views of a run and of its summary."""

import io
import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from trotline.adapters.sqlite.sink_sql_views import view_sql
from trotline.cli.eta_view import Outlook
from trotline.cli.formatting import retries_limited
from trotline.cli.live_view import LiveView, frame
from trotline.cli.plain_views import JsonLines, Lines
from trotline.cli.run import CODES
from trotline.cli.status import lane_line
from trotline.cli.summary import HEADLINES, Summary, lines, next_steps, summarise
from trotline.commands.dead_reasons import Burial
from trotline.commands.run import Ending, Report
from trotline.config import backends
from trotline.model.job import Budget, Job, LaneView, Progress
from trotline.model.row_counts import Stored
from trotline.rules.eta import Range, Unknown

JOB = Job(id="shop-3", spider="shop", started_at=0.0)
RESTING = LaneView(
    lane="books.example", waiting=3, leased=0, interval=1.0, rests_for=28.0, why="429, they asked for 30 s"
)


def report(elapsed: float = 0.0, done: int = 0, **more: Any) -> Report:
    progress = Progress(waiting=1000 - done, leased=16, done=done, dead=4, tallies=more.pop("tallies", {}))
    fields: dict[str, Any] = {
        "lanes": [], "errors": {}, "held_back": "", "workers": 2, "resumed": False, "found": done,
        "pages_per_second": 18.2,
    }  # fmt: skip
    return Report(job=JOB, progress=progress, elapsed=elapsed, **(fields | more))


def summary(**more: Any) -> Summary:
    fields: dict[str, Any] = {
        "ending": "finished", "spider": "shop", "job": "shop-3", "pages": 120, "records": 100, "found": 100,
        "seconds": 60.0,
        "waiting": 0, "dead": 0, "sink": "sqlite:shop.db", "command": "trotline run shop.py",
        "stored": Stored(new=100, rows={"product": 100}),
    }  # fmt: skip
    return Summary(**(fields | more))


def said(given: Summary) -> str:
    return "\n".join(lines(given))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (40, 10), (200, 60)])
def test_a_frame_fits_any_screen(width: int, height: int):
    lanes = [RESTING] * 50
    errors = {f"retry: {'x' * 300} {number}": number for number in range(20)}
    text = frame(report(lanes=lanes, errors=errors, held_back="y" * 500), Unknown.TOO_EARLY, width, height).plain
    rows = text.split("\n")
    assert len(rows) < height
    assert max(map(len, rows)) <= width


def test_what_a_memory_misses_is_shown_at_the_start_and_while_the_job_runs():
    told = "Bloom filter, 1,200,000 of 10,000,000 expected, about 40 new URLs taken for known so far"
    given = report()
    given = msgspec.structs.replace(given, progress=msgspec.structs.replace(given.progress, seen=told))
    said_lines: list[str] = []
    view = Lines(echo=said_lines.append)
    view.show(given)
    view.show(given)

    assert f"seen: {told}" in frame(given, Unknown.TOO_EARLY, 120, 40).plain
    assert len([line for line in said_lines if told in line]) == 1


def test_a_frame_shows_what_an_operator_asks_for():
    text = frame(
        report(70, 600, lanes=[RESTING], errors={"retry: 503": 12}, held_back="sink is slow", resumed=True),
        Range(120, 290),
        100,
        30,
    ).plain
    for part in (
        "waiting 400",
        "leased 16",
        "done 600",
        "dead 4",
        "18.2 pages/s",
        "ends in 2 to 5 min",
        "sink is slow",
    ):
        assert part in text
    for part in ("shop-3  resumed", "1:10", "28 s: 429, they asked for 30 s", "12  retry: 503", "59 % of 1,020"):
        assert part in text


def test_what_pages_say_cannot_steer_the_terminal():
    text = frame(report(errors={"dead: \x1b]0;owned\x07": 1}), Unknown.TOO_EARLY, 80, 24).plain
    assert "\x1b" not in text


def test_the_live_view_leaves_nothing_behind():
    out = io.StringIO()
    view = LiveView(console=Console(file=out, force_terminal=True, width=80, height=24))
    view.show(report())
    view.close()
    assert "waiting" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K"), "the last picture is wiped; the summary follows"


def test_lines_come_every_five_seconds_and_on_change():
    out: list[str] = []
    view = Lines(echo=out.append)
    for tick in range(21):
        lanes = [RESTING] if tick >= 7 else []
        view.show(report(tick * 0.5, tick, lanes=lanes, held_back="sink is slow" if tick in (3, 4) else ""))
    plain = [line for line in out if "waiting" in line]
    assert len(plain) == 3
    changes = [line.strip() for line in out if "waiting" not in line]
    assert changes == [
        "0:01  sink is slow",
        "0:02  no longer held back",
        "0:03  lane books.example rests for 28 s: 429, they asked for 30 s",
    ]


def test_json_lines_are_json_and_hold_the_numbers():
    out: list[str] = []
    view = JsonLines(echo=out.append)
    for tick in range(5):
        view.show(report(tick * 0.5, tick, lanes=[RESTING]))
    first, *others = map(json.loads, out)
    assert len(others) == 2
    assert (first["event"], first["job"], first["waiting"], first["dead"]) == ("progress", "shop-3", 1000, 4)
    assert first["eta"] == {"unknown": "no estimate yet: too early"}
    assert first["lanes"][0]["why"] == "429, they asked for 30 s"


def test_the_outlook_knows_the_page_limit():
    outlook = Outlook(max_pages=200)
    found: Range | Unknown = Unknown.TOO_EARLY
    for tick in range(41):
        found = outlook.update(report(tick * 0.5, 500 + tick * 5))
    assert found == Range(0.0, 0.0)


def test_every_ending_has_a_headline_and_an_exit_code():
    assert {str(ending) for ending in Ending} == set(HEADLINES) == set(CODES)


def test_a_finished_run_says_where_the_rows_are_and_how_to_look():
    text = said(summary())
    assert "120 in 1 min, 2.0 pages/s" in text
    assert "100 in shop.db" in text
    assert "sqlite3 shop.db 'select * from product limit 5'" in text


@pytest.mark.parametrize("kind", ["all", "order", "select", "product", "group", "visits"])
def test_the_way_to_look_is_valid_sql_also_for_reserved_words(kind: str, tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.execute("CREATE TABLE records (data, kind, site, key, url, seen_at)")
        db.execute(view_sql(kind, ["title"]) or "")
        query = shlex.split(backends.look_command("sqlite:a.db", {kind: 1}))[2]
        assert db.execute(query).description[0][0] == "title"


@pytest.mark.parametrize(
    ("sink", "look"),
    [("jsonl:out/a b.jsonl", "head 'out/a b.jsonl'"), ("csv:a.csv", "head a.csv"), ("parquet:a.parquet", "pyarrow")],
)
def test_each_sink_has_its_way_to_look(sink: str, look: str):
    assert look in said(summary(sink=sink, stored=Stored(new=100, rows={})))


def test_a_kind_that_is_no_plain_name_is_not_put_into_a_query():
    assert "select kind, key, data from records" in said(
        summary(stored=Stored(new=3, rows={'x"; drop table records; --': 3}))
    )


def test_the_dead_are_grouped_and_the_commands_are_given():
    steps = dict(next_steps(summary(ending="finished with dead", dead=4)))
    assert steps["the dead"] == "trotline dead shop"
    assert steps["revive"] == "trotline dead shop --revive && trotline run shop.py"
    buried = (Burial(why="blocked: 403", count=3), Burial(why="broken: 503", count=1))
    text = said(summary(ending="finished with dead", dead=4, burials=buried))
    assert "finished, but 4 tasks are dead" in text
    assert text.index("3  blocked: 403") < text.index("1  broken: 503")


def test_an_interrupted_run_says_how_to_go_on():
    steps = dict(next_steps(summary(ending="interrupted", waiting=1234)))
    assert steps["resume"] == "trotline run shop.py"


def test_an_empty_run_points_to_try():
    text = said(summary(ending="empty", records=0, found=0, stored=None, command="trotline run shop.py --slots 4"))
    assert "no record was stored" in text
    assert "trotline try shop.py" in text


def test_what_was_left_out_is_counted_with_its_reason():
    tallies = {
        "ok": 90,
        "records": 90,
        "gone: 404": 7,
        "links known": 300,
        "refused: robots.txt": 2,
        "dead: broken: 503": 4,
    }
    made = summarise(
        report(10, 100, tallies=tallies), ending="finished", sink="csv:a.csv", command="x", visited_before=0
    )
    assert made.dropped == {"links known": 300, "gone: 404": 7, "refused: robots.txt": 2}
    assert made.pages == 104


def test_a_resumed_run_counts_only_its_own_pages():
    made = summarise(report(10, 100), ending="finished", sink="csv:a.csv", command="x", visited_before=60)
    assert made.pages == 44


def test_tasks_that_were_buried_without_a_visit_are_no_pages():
    tallies = {"ok": 80, "dead: broken: 503": 4, "dead: unreachable: lane given up after 1800 s of failures only": 20}
    made = summarise(report(10, 100, tallies=tallies), ending="finished", sink="csv:a.csv", command="x")
    assert made.pages == 84


@pytest.mark.parametrize(
    ("found", "stored", "text"),
    [
        (100, Stored(new=100, rows={"product": 100}), "100 in shop.db"),
        (
            130,
            Stored(new=90, changed=10, again=30, rows={"product": 100}),
            "100 in shop.db: 90 new, 10 changed, 30 seen again",
        ),
        (5, Stored(new=5, rows={"product": 4_000}), "4,000 in shop.db: 5 new"),
        (5, Stored(new=3, again=2, rows=None), "3 new, 2 seen again in shop.db (too many rows to count)"),
        (5, None, "5 found, sent to shop.db"),
        (5, Stored(rows={"product": 7}), "5 found, none of them in shop.db: do the workers store elsewhere?"),
        (0, Stored(rows={"product": 7}), "7 in shop.db: 0 new"),
        (0, None, "0"),
    ],
)
def test_the_number_of_records_is_the_sinks_own(found: int, stored: Stored | None, text: str):
    made = summarise(
        report(10, found=found, stored=stored), ending="finished", sink="sqlite:shop.db", command="x", visited_before=0
    )
    [line] = [line for line in lines(made) if line.startswith("  records")]
    assert line == f"  records   {text}"


def test_several_kinds_are_counted_one_by_one():
    made = summary(stored=Stored(new=23, rows={"listing": 3, "product": 20}))
    assert "23 in shop.db\n            20 product, 3 listing" in said(made)


def test_rejected_records_have_reason_number_example_and_command():
    buried = Burial(
        why="bad record: price: expected float, got str",
        count=400,
        url="https://shop.example/p/7",
        said='{"sku":"T7","price":"ask us"}',
    )
    text = said(summary(ending="finished with dead", rejected=400, burials=(buried,)))
    assert "finished, but 400 records were rejected" in text
    assert (
        """  rejected  400  price: expected float, got str
                 such as https://shop.example/p/7
                 {"sku":"T7","price":"ask us"}"""
        in text
    )
    assert "rejected  trotline dead shop --why 'bad record'" in text
    assert "revive    trotline dead shop --why 'bad record' --revive && trotline run shop.py" in text


def test_reasons_beyond_the_shown_ones_are_counted():
    buried = tuple(Burial(why=f"broken: {500 + number}", count=10 - number) for number in range(9))
    text = said(summary(ending="finished with dead", dead=54, burials=buried))
    assert "9  for 3 other reasons" in text


def test_tasks_that_died_of_proxies_that_fail_alike_are_one_line():
    why = "unreachable: proxy 10.0.0.{}:8080 refused to connect to shop.example: not allowed by its rules"
    buried = tuple(
        Burial(why=why.format(place), count=9 - place, url=f"http://x.test/{place}") for place in range(1, 6)
    )
    text = said(summary(ending="finished with dead", dead=30, burials=buried))
    assert (
        "30  unreachable: proxy refused to connect to shop.example: not allowed by its rules, through 5 proxies: "
        in text
    )
    assert "10.0.0.1:8080, 10.0.0.2:8080, 10.0.0.3:8080 and 2 more" in text
    assert text.count("such as") == 1 and "http://x.test/1" in text


GUARDED = (
    "refused: http://127.0.0.1:8010/catalog/ leads to the loopback address 127.0.0.1; use --allow 127.0.0.1 to visit it"
)


def test_the_advice_of_a_reason_is_shown_whole():
    buried = (Burial(why=GUARDED, count=1, url="http://127.0.0.1:8010/catalog/"),)

    assert GUARDED in said(summary(ending="finished with dead", dead=1, burials=buried))


def test_a_run_that_leaves_tasks_waiting_says_what_holds_them_back():
    held = "robots.txt of 127.0.0.1:18399: no connection: Connection refused"
    text = said(summary(ending="stopped at limit", records=0, waiting=3, delayed=2, held_back=held))
    assert "  waiting   3, 2 of them for a retry\n" in text
    assert f"  held back {held}\n" in text
    assert "waiting   1, for a retry\n" in said(summary(ending="interrupted", waiting=1, delayed=1, held_back=held))
    plain = said(summary(ending="interrupted", waiting=3))
    assert "  waiting   3\n" in plain
    assert "held back" not in plain


def test_a_summary_tells_the_reason_without_a_next_try_that_will_not_come():
    given = report(held_back="shop.example: 429, again in 14 s")
    made = summarise(given, ending="interrupted", sink="sqlite:shop.db", command="trotline run shop.py")
    assert made.held_back == "shop.example: 429"
    resting = summarise(report(lanes=[RESTING]), ending="interrupted", sink="sqlite:shop.db", command="x")
    errors = {"retry: broken: 503": 1, "retry: unreachable: no connection": 3, "dead: gone": 9}
    failing = report(errors=errors)
    failing = msgspec.structs.replace(failing, progress=msgspec.structs.replace(failing.progress, delayed=2))
    retried = summarise(failing, ending="interrupted", sink="sqlite:shop.db", command="x")
    assert retried.held_back == "unreachable: no connection"
    assert resting.held_back == "lane books.example rests for 28 s: 429, they asked for 30 s"


def test_what_a_limit_stopped_is_held_back_by_the_limit_alone():
    given = report(held_back="shop.example: 429, again in 14 s")
    spent = msgspec.structs.replace(given, progress=msgspec.structs.replace(given.progress, budget=Budget(pages=4)))
    made = summarise(spent, ending="stopped at limit", sink="sqlite:shop.db", command="trotline run shop.py")
    assert made.held_back == ""


def test_a_lane_that_mostly_fails_says_why_its_retries_are_slow() -> None:
    lane = LaneView(lane="a.example", waiting=9, leased=0, interval=0.5, trouble=0.8)
    assert retries_limited(lane) == "most visits fail: one retry per 10 s"
    assert lane_line(lane).endswith("every 0.5 s  most visits fail: one retry per 10 s")
    assert retries_limited(LaneView(lane="b.example", waiting=9, leased=0, interval=0.5, trouble=0.4)) == ""

"""How the life of a URL reads: each fate with what it means and what comes next."""

import click
import msgspec
import pytest

from trotline.cli.formatting import json_line
from trotline.cli.trace_view import Where, lines
from trotline.commands.trace_facts import facts_of
from trotline.model.job import Grave, Job, LaneRules, LaneView, Progress, State, TaskStatus
from trotline.model.queue_job import SCRAPY
from trotline.model.record_row import Row
from trotline.model.visit_row import VisitRow
from trotline.rules.url_history import Facts, Identity

URL = "https://shop.example/p/17"
JOB = Job(id="shop-3", spider="shop", started_at=0.0)
WHERE = Where(job=JOB, file="shop.py", routes=("listing", "product"), sink="sqlite:shop.db")
RUNNING = Progress(waiting=5, leased=0, done=3, dead=1, started_at=1.0, now=100.0)
VISIT = VisitRow(
    job="shop-3", token=1, site="shop", url=URL, fingerprint=7, route="product", lane="shop.example", worker="w1",
    leased_at=1_760_000_000.25, found_at=1_760_000_000.0, parent="https://shop.example/c", depth=2,
    status=200, took=0.034, size=29_000, verdict="ok", outcome="done", records=1, children=12,
)  # fmt: skip


def visit(**more):
    return msgspec.structs.replace(VISIT, **more)


def told(*visits, state="unknown", where=WHERE, has_ledger=True, width=200, there=None, **more):
    place = there or TaskStatus(state=state)
    known = {
        "job": "shop-3", "asked": URL, "url": URL, "same_as": URL, "lane": "shop.example", "progress": RUNNING,
        "identities": (Identity(route="product", fingerprint=7, whereabouts=place),), "workers": 1,
    }  # fmt: skip
    facts = Facts(**known | {"visits": visits} | more)
    return click.unstyle("\n".join(lines(facts, where, has_ledger=has_ledger, width=width))) + "\n"


def lane(**more):
    return LaneView(**{"lane": "shop.example", "waiting": 16, "leased": 0, "interval": 0.5} | more)


def test_a_whole_story_reads_from_top_to_bottom():
    rows = (Row("shop", "product", "T17", URL, 1.0, "{}"),)

    assert (
        told(visit(), state="ended", rows=rows, asked=URL + "?utm_source=mail", width=80)
        == """\
https://shop.example/p/17?utm_source=mail
  is the same page as https://shop.example/p/17

read: 1 record, 12 new links
  job shop-3, route product, id 0000000000000007

2025-10-09 UTC
  08:53:20.000  found    on https://shop.example/c, 2 links from a seed
  08:53:20.250  visit 1  done    200 ok, 34 ms, 28.3 KiB, 1 record, 12 new links
                                 by w1

stored  1 row of product: T17

It is not visited again in this job.

see what comes of it now  trotline try shop.py product https://shop.example/p/17
"""
    )


def test_what_ended_well_is_green_and_what_died_is_red():
    facts = Facts(job="shop-3", asked=URL, progress=RUNNING, visits=(visit(), visit(token=2, outcome="bury")))
    out = "\n".join(lines(facts, WHERE, has_ledger=True, width=80))

    assert click.style("done", fg="green") in out
    assert click.style("bury", fg="red") in out
    assert click.style("dead: ", fg="red", bold=True) in out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "16 tasks wait in lane shop.example, one start every 0.5 s."),
        ({"rests_for": 30.0, "why": "429, they asked for 30 s"}, "which rests for 30 s: 429, they asked for 30 s."),
        ({"state": State.PAUSED}, "which is paused."),
        ({"waiting": 1}, "1 task waits in lane shop.example"),
        ({"interval": 0.0}, "16 tasks wait in lane shop.example, which has no interval between starts."),
    ],
)
def test_a_task_that_waits_says_for_what(more, said):
    assert said in told(state="waiting", lane_view=lane(**more))


def test_what_is_paused_comes_with_the_command_that_resumes_it():
    paused = told(state="waiting", lane_view=lane(state=State.PAUSED))
    whole = told(state="waiting", progress=msgspec.structs.replace(RUNNING, state=State.PAUSED))

    assert "trotline resume shop-3 --lane shop.example" in paused
    assert "The job is paused: nothing is handed out." in whole
    assert "trotline resume shop-3\n" in whole


def test_where_nobody_works_it_says_how_to_go_on():
    assert "trotline run shop.py" in told(state="waiting", workers=0)
    fleet = msgspec.structs.replace(WHERE, by_work=True, frontier="redis://:canary@db:6379/0")
    said = told(state="waiting", workers=0, where=fleet)
    assert "trotline work shop.py --frontier redis://db:6379/0" in said
    assert "canary" not in said


def test_a_retry_says_when_it_is_due():
    there = TaskStatus(state="delayed", due_in=12.0, attempt=1)
    assert "waiting: due in 12 s" in told(visit(outcome="retry", verdict="broken", status=503), there=there)


def test_a_lease_says_who_holds_it():
    there = TaskStatus(state="leased", worker="host-1-0-abc")
    assert "Worker host-1-0-abc holds it." in told(there=there)


def test_a_death_and_a_second_life_are_told():
    out = told(
        visit(outcome="bury", status=0, verdict="unreachable", why="unreachable: connect timed out"),
        visit(token=2, leased_at=VISIT.leased_at + 60, attempt=0),
        visit(token=3, leased_at=VISIT.leased_at + 90, attempt=2),
        state="ended",
    )

    assert "bury    unreachable, 34 ms, 28.3 KiB, unreachable: connect timed out" in out
    assert "revived  from the graveyard, with a fresh start" in out
    assert "lost     its worker died, and it went to another (2 times)" in out


def test_a_visit_without_a_request_says_why():
    late = visit(outcome="snooze", verdict="", status=0, took=0.0, size=0, why="missed its start time")
    robots = visit(verdict="refused", status=0, took=0.0, size=0, why="refused: robots.txt")

    assert "snooze  missed its start time" in told(late, state="waiting")
    assert "yours to answer for" in told(robots, state="ended")


def test_a_proxy_is_named():
    assert "by w1 through proxy.example:3128" in told(visit(proxy="proxy.example:3128"), state="ended", width=120)


def test_a_page_that_gave_nothing_points_to_the_selectors():
    assert "are the selectors right?" in told(visit(records=0, children=0), state="ended")


REJECTS = (
    Grave(id="r4", url=URL, route="product", why="bad record: price: expected float, got str", record='{"price":"?"}'),
    Grave(id="r5", url=URL, route="product", why="bad record: sku: the key is missing", record="{}"),
)


def test_a_page_whose_records_were_rejected_says_so_and_not_that_nothing_was_found():
    one = told(visit(records=0, children=0), state="ended", rejected=REJECTS[:1])
    both = told(visit(records=3, children=0), state="ended", rejected=REJECTS)

    assert "read: no record, 1 record rejected, no new link\n" in one
    assert "1 record of this page was rejected and is not stored: price: expected float, got str." in one
    assert "look at what was rejected  trotline dead shop-3 r4\n" in one
    assert "selectors" not in one
    assert "read: 3 records, 2 records rejected, no new link\n" in both
    assert "2 records of this page were rejected and are not stored: price: expected float, got str; sku: the" in both
    assert "trotline dead shop-3 r4 r5\n" in both


def test_rejected_records_are_told_where_visits_are_not_known():
    out = told(state="ended", has_ledger=False, rejected=REJECTS[:1])

    assert "1 record of this page was rejected" in out
    assert "trotline dead shop-3 r4\n" in out


def test_a_sitemap_is_not_tried_as_a_page():
    sitemap = Identity(route="sitemap.xml", fingerprint=7, whereabouts=TaskStatus(state="ended"))
    read = told(visit(route="sitemap.xml", records=0, children=0), identities=(sitemap,))

    assert "trotline try" not in read
    assert "selectors" not in read
    assert "It led to no page: it lists none, or only what match= or the spider's scope leaves out." in read
    assert "trotline try" not in told(
        visit(route="sitemap.xml", outcome="bury", why="gone: 404"), identities=(sitemap,)
    )


def test_a_url_may_be_one_that_the_match_of_a_sitemap_left_out():
    left = msgspec.structs.replace(RUNNING, tallies={"links refused: sitemap: URL does not match": 40})
    out = told(progress=left, width=400)

    assert "It may be one of the 40 URLs of sitemaps that do not match match= of the seed." in out
    assert "no page that was read so far led to it" in out


def test_rows_that_went_to_another_page_are_missed():
    assert "No row names this page now" in told(visit(), state="ended")


def test_many_rows_are_counted_by_kind():
    rows = tuple(Row("shop", "product", f"T{n}", URL, 1.0, "{}") for n in range(9))
    assert "9 rows of product: T0, T1, T2, T3, T4 and 4 more" in told(visit(), state="ended", rows=rows)


def test_rows_of_several_sites_are_told_apart():
    rows = tuple(Row(site, "product", "S0599", URL, 1.0, "{}") for site in ("shop-a", "shop-b"))
    assert "2 rows of product: S0599 of shop-a, S0599 of shop-b" in told(visit(), state="ended", rows=rows)


def test_visits_of_an_earlier_job_are_told_as_such():
    out = told(visit(job="shop-2"))

    assert "UTC, job shop-2, route product" in out
    assert "That was in shop-2. shop-3 has not met it." in out


def test_what_this_job_refused_was_met_by_it_whatever_an_earlier_one_did():
    cut = visit(token=9, job="shop-3", outcome="refused", why="depth", depth=3, status=0, verdict="")
    out = told(visit(job="shop-2"), cut)

    assert "refused: depth" in out.splitlines()[2]
    assert "Earlier it was visited, in shop-2; shop-3 left it out." in out
    assert "has not met it" not in out


def test_what_an_earlier_job_refused_was_not_refused_by_this_one():
    out = told(visit(job="shop-2", outcome="refused", why="depth", depth=3, status=0, verdict=""))

    assert "That was in shop-2. shop-3 has not met it." in out


@pytest.mark.parametrize(("host", "private"), [("127.0.0.1:8000", True), ("[::1]", True), ("shop.example", False)])
def test_a_page_at_a_private_address_is_tried_with_leave(host, private):
    url = f"http://{host}/p/17"
    out = told(visit(url=url), state="ended", asked=url, url=url, same_as=url)

    [line] = [line for line in out.splitlines() if "trotline try" in line]
    assert line.endswith(" --allow-private") == private


def test_a_changed_file_is_mentioned_where_its_gate_is_quoted():
    changed = msgspec.structs.replace(WHERE, changed=True)
    assert "shop.py has changed since the job began" in told(where=changed, refusal="host", rule="a.example")
    assert "shop.py has changed" not in told(visit(), where=changed, state="ended")


@pytest.mark.parametrize(
    ("refusal", "rule", "said"),
    [
        ("host", "a.example", "The spider visits a.example. Add shop.example to its hosts=[...]."),
        ("excluded", "/p/", "exclude has the pattern /p/"),
        ("not included", "/x", "patterns of its include is found in this URL: /x."),
        ("depth", "3", "Raise max_depth in the spider"),
        ("trap: session id", "", "The trap rules keep it out"),
        ("too long", "", "never entered: it is too long"),
    ],
)
def test_every_refusal_says_what_to_change(refusal, rule, said):
    assert said in told(refusal=refusal, rule=rule)


def test_a_link_that_a_limit_left_out_is_told_with_its_page_and_the_limit():
    rules = LaneRules(own_limits={"max_depth": 2})
    where = msgspec.structs.replace(WHERE, job=msgspec.structs.replace(JOB, rules=rules))
    out = told(visit(outcome="refused", why="depth", depth=3, status=0, verdict=""), where=where)

    assert "refused: depth, links deeper than max_depth=2 (raise max_depth) at https://shop.example/c" in out
    assert "refused  depth, on https://shop.example/c, 3 links from a seed" in out
    assert "no page" not in out


def test_a_link_that_is_not_kept_by_name_may_be_one_of_those_left_out():
    cut = msgspec.structs.replace(RUNNING, tallies={"links refused: trap: same text": 40})
    out = told(progress=cut)

    assert "links on pages that all have the same text: 40 (raise TrapRules(same_text))" in out
    assert "no page that was read" not in out


def test_a_task_can_be_put_in_while_the_job_runs_and_into_the_next_one_afterwards():
    over = msgspec.structs.replace(RUNNING, finished_at=50.0)

    assert f"echo {URL} | trotline push shop.py - --route ROUTE --job shop-3" in told()
    assert "| trotline run shop.py --seeds -" in told(progress=over)
    assert "ROUTE is one of" in told()
    alone = msgspec.structs.replace(WHERE, routes=("product",))
    assert "--route product" in told(where=alone)


def test_what_is_not_known_is_said():
    bare = msgspec.structs.replace(WHERE, file="", routes=())
    assert "Its routes and its scope are not known here: name the file of spider shop with --spider FILE" in told(
        where=bare
    )
    assert "sqlite:shop.db is not there" in told(state="dead", has_ledger=False)
    assert "sqlite:shop.db has no line about it" in told(state="ended")


def test_without_the_file_it_does_not_claim_that_the_job_has_never_seen_a_page():
    """The spider may have rules of its own for URLs."""
    said = told(where=msgspec.structs.replace(WHERE, file=""))
    assert "never seen" not in said
    assert "not found without the spider's file" in said
    assert "under this very URL, as a task of listing or product." in " ".join(said.split())
    assert "name the file of spider shop with --spider FILE" in " ".join(said.split())


@pytest.mark.parametrize(
    "sink", ["jsonl:rows.jsonl", "csv:rows.csv", "parquet:rows.parquet", "redis://db:6379/0?outbox=results"]
)
def test_a_sink_whose_backend_has_no_ledger_keeps_no_visits(sink):
    where = msgspec.structs.replace(WHERE, sink=sink)
    assert f"{sink} keeps no visits" in told(state="dead", where=where, has_ledger=False)


def test_nothing_of_a_page_moves_the_cursor_and_no_secret_is_shown():
    odd = visit(why="\x1b[2J\u202e boo", outcome="bury", parent="https://u:canary@h.test/?token=canary", worker="w\x07")
    facts = Facts(job="shop-3", asked=URL + "?token=canary", progress=RUNNING, visits=(odd,))
    out = "\n".join(lines(facts, WHERE, has_ledger=True, width=80))

    assert "canary" not in out
    for char in ("\x1b[2J", "\u202e", "\x07"):
        assert char not in out


def test_the_json_form_has_the_facts_and_no_secret():
    facts = Facts(
        job="shop-3", asked=URL + "?token=canary", url=URL, same_as=URL, progress=RUNNING, visits=(VISIT,),
        rows=(Row("shop", "product", "T17", URL + "?token=canary", 1.0, '{"a": 1}'),), lane_view=lane(),
    )  # fmt: skip
    facts = msgspec.structs.replace(facts, rejected=REJECTS[:1])
    told_ = facts_of(facts, WHERE.job)

    assert (told_["fate"], told_["job"], told_["state"]) == ("read", "shop-3", "running")
    assert told_["rejected"] == [
        {"id": "r4", "route": "product", "why": "price: expected float, got str", "record": '{"price":"?"}'}
    ]
    assert told_["visits"][0]["leased_at"] == "2025-10-09T08:53:20.250Z"
    assert "canary" not in json_line(told_)


def test_a_run_that_is_suggested_stores_where_the_question_was_asked():
    where = msgspec.structs.replace(WHERE, frontier="sqlite:f.db", given_sink="other.db")

    assert "trotline run shop.py --frontier sqlite:f.db --sink other.db" in told(
        state="waiting", where=where, workers=0, lane_view=lane()
    )
    assert "trotline status shop --frontier sqlite:f.db\n" in told(state="ended", where=where)


def test_a_step_that_waits_for_another_names_it_and_its_chain():
    there = TaskStatus(state="waiting", chain="basket 7", waits_for="https://shop.example/b/1")

    assert "waits for step https://shop.example/b/1 of chain basket 7" in told(there=there)


def test_a_step_that_was_buried_for_another_is_revived_with_it():
    why = "chain: step https://shop.example/b/1 failed: gone: 404"

    out = told(there=TaskStatus(state="dead", why=why))

    assert f"dead: {why}" in out
    assert "revived together with the step of its chain that failed" in out


def test_a_task_of_scrapy_has_no_route_and_none_is_named():
    there = TaskStatus(state="ended")
    said = told(identities=(Identity(route="", fingerprint=7, whereabouts=there),), has_ledger=False)
    assert "job shop-3, id 0000000000000007" in said


def test_a_page_of_scrapy_that_is_not_found_may_have_been_visited():
    """A request with dont_filter has an identity that its URL does not give."""
    job = msgspec.structs.replace(JOB, rules=LaneRules(source=SCRAPY))
    said = told(where=Where(job=job, sink="sqlite:shop.db"), has_ledger=False)
    assert "cannot tell" in said
    assert "dont_filter" in said
    assert "never seen" not in said

"""`status`, `dead` and `trace` show one job alike, and `dead --revive` gives its tasks a fresh start."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import SPIDER, Call
from trotline.cli.dead import _first_words


def test_status_without_jobs_says_how_to_start_one_and_makes_no_file(call: Call):
    assert "trotline run" in call("status")[1]
    assert call("dead")[0] == 2
    assert call("status", "--frontier", "sqlite:none.db")[0] == 2
    assert list(Path().iterdir()) == []


def test_status_shows_the_four_numbers(call: Call, job: str):
    code, out, _ = call("status")
    assert code == 0
    # Its worker has not left: it is between two starts.
    assert out.splitlines()[1].split()[:6] == [job, "running", "1", "0", "1", "2"]


def test_status_of_one_job_shows_its_dead_and_what_to_do(call: Call, job: str):
    out = call("status", job)[1]
    assert "blocked: 403" in out
    assert "trotline dead shop" in out


def test_status_json_is_json(call: Call, job: str):
    facts = json.loads(call("status", "shop", "--json")[1])
    assert (facts["job"], facts["waiting"], facts["done"], facts["dead"]) == (job, 1, 1, 2)
    assert facts["reasons"]["broken: 503"] == 1


@pytest.mark.parametrize("name", ["shop", "shop-1", "shop.py", None])
def test_a_job_is_found_by_any_of_its_names(call: Call, job: str, name: str | None):
    Path("shop.py").write_text(SPIDER)
    code, out, _ = call("dead", *([name] if name else []))
    assert code == 0
    assert "shop-1: 2 dead, 1 rejected record\n" in out


def test_dead_are_tasks_and_rejected_are_records_in_every_command(call: Call, job: str):
    dead = call("dead", "shop")[1]
    assert dead.index("\ndead\n") < dead.index("1  blocked: 403") < dead.index("\nrejected records\n")
    assert dead.index("\nrejected records\n") < dead.index("1  bad record: price: not a number")
    assert "shop-1: 1 rejected record\n" in call("dead", "shop", "--why", "bad record")[1]
    assert "shop-1: 1 dead\n" in call("dead", "shop", "--why", "broken")[1]

    head, line = call("status")[1].splitlines()
    assert dict(zip(head.split(), line.split(), strict=False))["rejected"] == "1"
    closely = call("status", "shop")[1]
    assert "done 1  dead 2  rejected 1\n" in closely
    assert closely.index("\ndead\n") < closely.index("\nrejected records\n") < closely.index("bad record: price")
    facts = json.loads(call("status", "shop", "--json")[1])
    assert (facts["dead"], facts["rejected"]) == (2, 1)


def test_a_misspelt_job_is_guessed(call: Call, job: str):
    code, _, err = call("dead", "shpo")
    assert code == 2
    assert "Did you mean shop" in err


def test_the_dead_are_listed_without_secrets_and_control_characters(call: Call, job: str):
    out = call("dead")[1]
    assert "1  blocked: 403" in out
    assert "secret" not in out
    assert "\x1b" not in out
    assert "bad record: price: not a number" in out


def test_one_grave_is_shown_whole(call: Call, job: str):
    out = call("dead", "0000000000000001")[1]
    assert "blocked: 403" in out
    assert "server: nginx␛[31m" in out
    assert "secret" not in out


def test_an_unknown_id_is_said_to_be_unknown(call: Call, job: str):
    code, _, err = call("dead", "shop", "00000000000000ff")
    assert code == 2
    assert "00000000000000ff" in err


def test_reviving_by_reason_revives_only_those(call: Call, job: str):
    assert "1 page of shop-1" in call("dead", "shop", "--why", "blocked", "--revive")[1]
    facts = json.loads(call("status", "shop", "--json")[1])
    assert (facts["waiting"], facts["dead"]) == (2, 1)
    assert "Nothing to revive" in call("dead", "shop", "--why", "blocked", "--revive")[1]


POOLS = """
[pools.isp]
proxies = ["http://127.0.0.1:3128"]
"""


def test_revived_tasks_get_another_pool_if_it_exists(call: Call, job: str, monkeypatch: pytest.MonkeyPatch):
    Path("proxies.toml").write_text(POOLS)
    monkeypatch.setenv("TROTLINE_PROXIES", "proxies.toml")
    revive = ("dead", "shop", "--why", "blocked", "--revive")

    code, _, err = call(*revive, "--pool", "ips")
    assert code == 2
    assert "there is no proxy pool 'ips'" in err
    assert "'isp'" in err
    code, out, err = call(*revive, "--pool", "isp")
    assert (code, err) == (0, "")
    assert "1 page of shop-1 will be visited again, with a fresh start, through the proxy pool isp." in out
    code, out, err = call("dead", "--why", "broken", "--revive", "--pool", "direct", "--json")
    assert (code, err, json.loads(out)) == (0, "", {"job": job, "revived": 1, "pool": "direct"})


def test_a_pool_that_cannot_be_checked_is_noted(call: Call, job: str):
    code, out, err = call("dead", "--why", "blocked", "--revive", "--pool", "isp")

    assert code == 0
    assert "not checked here (isp)" in err
    assert "through the proxy pool isp" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pool", "isp"), "with --revive"),
        (("--revive", "--export", "x", "--pool", "isp"), "two commands"),
        (("--revive", "--export", "x"), "two commands"),
        (("--revive", "--limit", "5"), "--limit is for the list"),
        (("--export", "x", "--limit", "5"), "--limit is for the list"),
        (("--revive", "--pool", "@buyers"), "pool of accounts"),
        (("--revive", "--pool", "a b"), "not the name of a proxy pool"),
    ],
)
def test_an_option_without_effect_or_meaning_is_refused(call: Call, job: str, words: tuple[str, ...], said: str):
    code, _, err = call("dead", "shop", *words)

    assert code == 2
    assert said in err
    assert json.loads(call("status", "shop", "--json")[1])["dead"] == 2


def test_the_dead_are_exported_as_json_lines_and_no_file_is_overwritten(call: Call, job: str):
    assert call("dead", "--export", "dead.jsonl")[0] == 0
    graves = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert sorted(grave["why"] for grave in graves) == [
        "bad record: price: not a number",
        "blocked: 403",
        "broken: 503",
    ]
    assert "secret" not in Path("dead.jsonl").read_text()
    code, _, err = call("dead", "--export", "dead.jsonl")
    assert code == 2
    assert "there already" in err


def test_trace_names_the_rejected_records_of_a_page_and_only_those(call: Call, job: str):
    Path("shop.py").write_text(SPIDER)
    out = call("trace", "https://shop.example/c", "shop")[1]

    assert "1 record of this page was rejected and is not stored: price: not a number." in out
    assert "trotline dead shop-1 r1\n" in out
    assert call("dead", "shop-1", "r1")[0] == 0
    assert "rejected" not in call("trace", "https://shop.example/b", "shop")[1]
    facts = json.loads(call("trace", "https://shop.example/c", "shop", "--json")[1])
    assert [reject["id"] for reject in facts["rejected"]] == ["r1"]


# export and doctor


def test_of_a_traceback_the_list_has_the_place():
    frames = '  File "a.py", line 1, in run\n    go()\n  File "shop.py", line 29, in product\n    raise ValueError("x")'
    assert _first_words(f"Traceback (most recent call last):\n{frames}\nValueError: x") == (
        'File "shop.py", line 29, in product'
    )
    assert _first_words("Traceback (most recent call last):") == "Traceback (most recent call last):"
    assert _first_words("no title\nmore") == "no title"
    assert _first_words("") == ""

"""What `trotline coordinate` refuses, and how its news look."""

import json

import pytest

from trotline.cli.coordinate import _printer
from trotline.cli.main import CANNOT_START, call
from trotline.coordinator.dependencies import CoordinatorEvent

SPIDER = 'from trotline import Spider\nshop = Spider("shop", schedule="0 3 * * *")\n'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "shop.py").write_text(SPIDER)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["shop.py", "shop.py:shop"], "both spider 'shop'"),
        (["shop.py", "--frontier", "sqlite::memory:"], "in memory"),
        (["shop.py", "--keep", "soon"], "not a length of time"),
        (["nope.py"], "no file nope.py"),
        ([], "SPIDER..."),
    ],
)
def test_what_cannot_work_is_said_before_anything_begins(words, what, capsys):
    assert call(["coordinate", *words]) == CANNOT_START
    assert what in capsys.readouterr().err


def test_news_are_one_line_each(capsys):
    _printer(quiet=False, json=False)(
        CoordinatorEvent(event="coordinator.leads", spider="shop", text="leading\x1b[2J (term 1)")
    )

    told = capsys.readouterr().out
    assert told.count("\n") == 1
    assert "shop: leading" in told
    assert "\x1b[2J" not in told


def test_news_for_machines_have_a_name_a_time_and_their_figures(capsys):
    news = CoordinatorEvent(
        event="alert.raised", spider="shop", text="it stalls", job="shop-3", data={"alert": "stalled job"}
    )
    _printer(quiet=False, json=True)(news)

    facts = json.loads(capsys.readouterr().out)
    assert facts.pop("time").endswith("Z")
    assert facts == {
        "event": "alert.raised", "spider": "shop", "job": "shop-3", "text": "it stalls", "alert": "stalled job",
    }  # fmt: skip


def test_quiet_is_quiet_until_something_is_wrong(capsys):
    tell = _printer(quiet=True, json=False)
    tell(CoordinatorEvent(event="tick.started", spider="shop", text="started shop-1"))
    tell(CoordinatorEvent(event="alert.raised", spider="shop", text="it stalls"))

    assert "it stalls" in (told := capsys.readouterr().out)
    assert "started" not in told

    tell(CoordinatorEvent(event="coordinator.recovered", spider="shop", text="recovered from: it hangs"))
    assert "recovered" in capsys.readouterr().out, "the last line must not be trouble that is over"


def test_no_news_shows_a_secret(capsys):
    tell = _printer(quiet=False, json=True)
    tell(
        CoordinatorEvent(
            event="coordinator.trouble", spider="shop", text="cannot reach redis://user:geheim@host:6379/0"
        )
    )

    assert "geheim" not in capsys.readouterr().out

"""Commands that are suggested work as they are shown: with the places and ways out of the one that was typed."""

import shlex

import click
import pytest

from trotline.cli import main as cli
from trotline.cli.suggested_commands import CARRIED, file_in, same
from trotline.cli.summary import Summary, next_steps


@pytest.mark.parametrize(
    ("typed", "name", "suggested"),
    [
        ("trotline run quotes.py", "try", "trotline try quotes.py"),
        ("trotline run quotes.py --allow-private", "try", "trotline try quotes.py --allow-private"),
        ("trotline run --slots 4 --allow-private quotes.py --quiet", "try", "trotline try quotes.py --allow-private"),
        (
            "trotline run 'my spiders/a.py' --allow 10.0.0.0/8 --allow wiki.example --frontier sqlite:f.db",
            "try",
            "trotline try 'my spiders/a.py' --allow 10.0.0.0/8 --allow wiki.example",
        ),
        ("trotline run a.py --out b.jsonl --frontier sqlite:f.db", "dead", "trotline dead a.py --frontier sqlite:f.db"),
        (
            "trotline run a.py --out b.db --frontier sqlite:f.db",
            "trace",
            "trotline trace a.py --frontier sqlite:f.db --sink b.db",
        ),
        (
            "trotline work a.py --frontier redis://q/0 --sink postgresql://d/x --until-finished",
            "work",
            "trotline work a.py --frontier redis://q/0 --sink postgresql://d/x",
        ),
        (
            "trotline work a.py --frontier amqp://me:pw@q/v --sink postgresql://me:p@ss:w@d/x",
            "work",
            "trotline work a.py --frontier amqp://me@q/v --sink postgresql://me@d/x",
        ),
        (
            "trotline work a.py --frontier redis://maybe-a-password@q/0 --sink postgresql://me@d/x",
            "work",
            "trotline work a.py --frontier redis://q/0 --sink postgresql://me@d/x",
        ),
        ("trotline work a.py --frontier redis://:pw@q/0", "work", "trotline work a.py --frontier redis://q/0"),
        ("trotline run a.py --proxy env:MY_PROXY", "try", "trotline try a.py --proxy env:MY_PROXY"),
    ],
)
def test_what_the_other_command_understands_is_carried_over(typed: str, name: str, suggested: str):
    assert same(name, file_in(typed), command=typed) == suggested
    known = cli.trotline.get_command(click.Context(cli.trotline), name)
    assert known is not None
    # It parses: what is suggested can be typed.
    known.make_context(name, shlex.split(suggested)[2:])


def test_a_password_is_not_repeated():
    typed = "trotline run a.py --frontier redis://me:hunter2@queue/0"

    assert "hunter2" not in same("dead", "a", command=typed)


def test_what_was_not_typed_through_the_command_line_carries_nothing():
    assert same("try", "a.py") == "trotline try a.py"
    assert file_in("pytest") == "FILE"


def test_every_option_that_is_carried_is_one_of_run():
    run = cli.trotline.get_command(click.Context(cli.trotline), "run")

    assert run is not None
    assert set(CARRIED) <= {param.name for param in run.params}


@pytest.mark.parametrize(("ending", "dead"), [("empty", 0), ("finished with dead", 2)])
def test_the_steps_after_a_run_say_what_the_run_was_told(ending: str, dead: int):
    typed = "trotline run --slots 2 quotes.py --allow-private --frontier sqlite:here.db"
    summary = Summary(
        ending=ending, spider="quotes", job="quotes-1", pages=3, records=0, found=0, seconds=1.0, waiting=0, dead=dead,
        sink="sqlite:quotes.db", command=typed,
    )  # fmt: skip
    steps = dict(next_steps(summary))

    if dead:
        assert steps["the dead"] == "trotline dead quotes --frontier sqlite:here.db"
        assert steps["revive"] == f"trotline dead quotes --revive --frontier sqlite:here.db && {typed}"
    else:
        assert steps["look"] == "trotline try quotes.py --allow-private"

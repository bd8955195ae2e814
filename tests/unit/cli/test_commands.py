"""Promises of the commands: what they say, what they return, and that they never show a bare traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import SPIDER, Call

COMMANDS = ("new", "try", "run", "status", "dead", "export", "doctor")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(call: Call, command: str):
    code, out, _ = call(command, "--help")
    assert code == 0
    assert 2 <= out.count(f"    trotline {command} ") <= 4, "two to four examples"


def test_the_help_names_every_command_without_importing_one(tmp_path: Path):
    heavy = ("aiohttp", "rich", "selectolax", "sqlite3", "trotline.commands.run", "msgspec")
    code = (
        "import sys; from trotline.cli.main import call; call(['--help']); "
        f"print('LOADED', [name for name in {heavy!r} if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert "LOADED []" in out
    for command in COMMANDS:
        assert f"\n  {command} " in out


def test_no_command_at_all_is_a_usage_error_that_helps(call: Call):
    code, out, err = call()
    assert code == 2
    assert "Commands:" in out + err


@pytest.mark.parametrize(("typed", "hint"), [("rnu", "'run'"), ("shop.py", "trotline run shop.py")])
def test_a_misspelt_command_is_guessed(call: Call, typed: str, hint: str):
    code, _, err = call(typed)
    assert code == 2
    assert hint in err


def test_the_version_is_told(call: Call):
    assert call("--version")[1].startswith("trotline 0.")


def test_an_error_nobody_expected_goes_to_a_file(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("trotline.config.spider_loader.parse_ref", lambda text: 1 / 0)
    code, _, err = call("doctor", "shop.py")
    assert code == 1
    assert "unexpected ZeroDivisionError" in err
    [story] = tmp_path.glob("trotline-*.txt")
    assert "Traceback" in story.read_text()


# doctor


def test_doctor_checks_the_frontier_and_the_sink_that_are_set(call: Call, monkeypatch: pytest.MonkeyPatch):
    assert call("doctor")[0] == 0
    Path("trotline.toml").write_text('sink = "postgresql://127.0.0.1:1/scrapes"\n')
    code, out, _ = call("doctor")
    assert code == 2
    assert "1 thing to put right first: sink." in out
    monkeypatch.setenv("TROTLINE_FRONTIER", "redis://127.0.0.1:1/0")
    assert "frontier, sink." in call("doctor")[1]


# new


def test_new_writes_a_spider_that_loads_and_names_the_next_commands(call: Call):
    code, out, _ = call("new", "my-shop", "https://shop.example/list")
    assert code == 0
    assert "trotline try my-shop.py" in out
    assert "trotline run my-shop.py" in out
    assert "https://shop.example/list" in Path("my-shop.py").read_text()
    assert call("doctor", "my-shop.py")[0] == 0


def test_new_never_overwrites(call: Call):
    Path("shop.py").write_text("precious")
    code, _, err = call("new", "shop")
    assert code == 2
    assert "there already" in err
    assert Path("shop.py").read_text() == "precious"


@pytest.mark.parametrize("words", [("a b",), ("shop", "shop.example"), ("shop", 'https://x/"+quit()+"')])
def test_new_refuses_what_would_not_run(call: Call, words: tuple[str, ...]):
    code, _, err = call("new", *words)
    assert code == 2
    assert err.startswith("error: ")
    assert not list(Path().glob("*.py"))


@pytest.mark.parametrize("name", ["class", "Page", "listing", "2nd", "shop"])
def test_new_makes_a_working_file_of_any_name(call: Call, name: str):
    call("new", name)
    assert call("doctor", f"{name}.py")[0] == 0


# run: what cannot start


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("nowhere.py",), "there is no file nowhere.py"),
        (("shop.py", "--slots", "0"), "--slots"),
        (("shop.py", "--out", "rows.xls"), "--out: 'rows.xls' is not a sink"),
        (("shop.py", "--out", "a.csv", "--sink", "sqlite:b.db"), "both"),
        (("shop.py", "--max-time", "soon"), "--max-time: 'soon' is not a length of time"),
        (("shop.py", "--frontier", "amqp://u@h"), "--frontier"),
        (("shop.py", "--frontier", "redis://:secret@h/0"), "Write --frontier env:NAME or --frontier file:PATH"),
        (("shop.py", "--sink", "postgresql://u:secret@h/d"), "or set TROTLINE_SINK"),
        (("shop.py", "--out", "postgresql://h/d?password=secret"), "--out has a password in it"),
        (("shop.py:nobody",), "shop.py:shop"),
    ],
)
def test_a_run_that_cannot_start_says_why_and_returns_2(call: Call, words: tuple[str, ...], part: str):
    Path("shop.py").write_text(SPIDER)
    code, _, err = call("run", *words)
    assert code == 2
    assert part in err
    assert "secret" not in err
    assert "secret" not in err
    assert not Path(".trotline").exists()


def test_a_misspelt_variable_stops_a_run(call: Call, monkeypatch: pytest.MonkeyPatch):
    Path("shop.py").write_text(SPIDER)
    monkeypatch.setenv("TROTLINE_SLOT", "3")
    code, _, err = call("run", "shop.py")
    assert code == 2
    assert "TROTLINE_SLOTS" in err


# try: what cannot start


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("prodcut", "https://shop.example/p"), "no route 'prodcut'"),
        (("https://shop.example/p",), "listing, product"),
        (("product", "shop.example/p"), "not a web address"),
        (("product",), "route 'product' has no seed"),
        (("product", "a", "b"), "at most"),
    ],
)
def test_try_says_what_it_needs(call: Call, words: tuple[str, ...], part: str):
    Path("shop.py").write_text(SPIDER)
    code, _, err = call("try", "shop.py", *words)
    assert code == 2
    assert part in err


# status and dead


@pytest.mark.parametrize("words", [("status",), ("doctor",), ("run", "shop.py"), ("trace", "https://shop.example/")])
def test_a_working_folder_that_was_deleted_is_no_mistake_of_ours(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
):
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, _, err = call(*words)
    assert code == 2
    assert err.startswith(
        "error: the working folder was deleted\n  Go to a folder that exists (cd), and run the command"
    )

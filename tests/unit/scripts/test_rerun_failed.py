"""What fails beside other tests and passes alone is named as flaky, and everything else fails as it did."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scripts import rerun_failed
from scripts.rerun_failed import FILE, main, remember, told

ONCE = """
    from pathlib import Path

    def test_that_fails_once():
        seen = Path("seen")
        if not seen.exists():
            seen.touch()
            assert False
"""
NEVER = """
    def test_that_passes():
        pass
"""
ALWAYS = """
    def test_that_fails():
        assert False
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run these tests in a folder of their own; the exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # Importing them takes longer than everything else here.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def tests(*sources: str) -> int:
        for number, source in enumerate(sources):
            lines = source.replace("\n    ", "\n")
            (tmp_path / f"test_{number}.py").write_text(lines)
        return main(["-q"])

    return tests


def flaky_ones() -> list[str]:
    return [line.partition(" ")[2] for line in FILE.read_text().splitlines()] if FILE.exists() else []


def test_a_test_that_passes_on_its_second_run_is_named_and_the_run_passes(run, capfd: pytest.CaptureFixture[str]):
    assert run(ONCE, NEVER) == 0
    assert flaky_ones() == ["test_0.py::test_that_fails_once"]
    assert "test_0.py::test_that_fails_once (1 so far)" in capfd.readouterr().out.splitlines()[-1]


def test_a_test_that_fails_twice_fails_beside_a_flaky_one(run):
    assert run(ONCE, ALWAYS) == 1
    assert flaky_ones() == ["test_0.py::test_that_fails_once"]


def test_a_run_without_a_failure_is_not_repeated(run, capfd: pytest.CaptureFixture[str]):
    assert run(NEVER) == 0
    assert flaky_ones() == []
    assert "flaky" not in capfd.readouterr().out


@pytest.mark.parametrize("code", [2, 3, 4, 5])
def test_a_run_that_was_cut_short_is_not_saved_by_a_second_one(monkeypatch: pytest.MonkeyPatch, code: int):
    asked: list[object] = []

    def pytest_ends(arguments: object) -> int:
        asked.append(arguments)
        return code

    monkeypatch.setattr(rerun_failed, "_pytest", pytest_ends)

    assert main(["-q"]) == code
    assert asked == [["-q"]]


def test_every_time_counts(tmp_path: Path):
    file = tmp_path / "dist" / "flaky.txt"
    remember(["a::b"], file, datetime(2026, 3, 1, tzinfo=UTC))
    counts = remember(["a::b", "a::c[x y]"], file, datetime(2026, 3, 2, tzinfo=UTC))

    assert counts == Counter({"a::b": 2, "a::c[x y]": 1})
    assert file.read_text().splitlines()[0] == "2026-03-01T00:00:00Z a::b"
    assert told(["a::b"], counts)[1] == "  a::b (2 so far)"


def test_processes_that_collect_different_tests_fail_at_once(run, monkeypatch: pytest.MonkeyPatch):
    """Pytest names the processes as what failed, and would run everything alone for that."""
    ran = []

    def pytest_of(arguments):
        ran.append(arguments)
        rerun_failed._LAST_FAILED.parent.mkdir(parents=True, exist_ok=True)
        rerun_failed._LAST_FAILED.write_text('{"gw1": true}')
        return 1

    monkeypatch.setattr(rerun_failed, "_pytest", pytest_of)

    assert run(NEVER) == 1
    assert ran == [["-q"]]

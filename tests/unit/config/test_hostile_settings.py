"""Settings that cannot work and hostile settings files: B74 and B77 of the fault list."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.config.settings import LARGEST_FILE, read
from trotline.errors import SettingsError


@pytest.mark.parametrize(
    "flags", [{"slots": 0}, {"slots": 10**6}, {"processes": 0}, {"grace": "0s"}, {"max_time": "-1s"}]
)
def test_b74_settings_that_cannot_work_are_refused(flags: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        read(flags, {}, tmp_path)


FILES: dict[str, bytes] = {
    "100 MB would be too much": b"# " + b"x" * LARGEST_FILE,
    "a bomb of nesting": b"slots = " + b"[" * 50_000,
    "tables without end": b"[" + b"a." * 5_000 + b"a]\nx = 1",
    "not text": b"\xff\xfe\x00slots = 1",
    "an unknown key": b"slotz = 4",
    "an unknown table": b"[aliases]\na = 1",
    "a table for a number": b"[slots]\na = 1",
    "a list for a text": b'sink = ["a.db"]',
    "a YAML bomb": b"a: &a [x, x]\nb: &b [*a, *a]",
    "a number for a place": b"frontier = 7",
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_b77_a_hostile_settings_file_is_refused_in_plain_words(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "trotline.toml").write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        read({}, {}, tmp_path)
    assert "trotline.toml" in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "content", [b"[tool]\ntrotline = 5", b"# tool.trotline\ntool = 5", b"# tool.trotline" * LARGEST_FILE]
)
def test_b77_a_hostile_pyproject_is_refused_or_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    try:
        read({}, {}, tmp_path)
    except SettingsError as error:
        assert "pyproject.toml" in str(error)


@given(st.binary(max_size=300))
def test_b77_any_settings_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("b77")
    (folder / "trotline.toml").write_bytes(content)
    try:
        read({}, {}, folder)
    except SettingsError as error:
        assert "trotline.toml" in str(error)

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trotline.config import components
from trotline.config.settings import read
from trotline.errors import SettingsError


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("http://collector:4318/", "http://collector:4318/v1/traces"),
        (" https://c.example/v1/traces ", "https://c.example/v1/traces"),
        ("https://c.example/otlp/x", "https://c.example/otlp/x"),
    ],
)
def test_the_path_of_a_collector_may_be_left_out(tmp_path: Path, given: str, url: str):
    assert read({"otel": given}, {}, tmp_path).otel == url


@pytest.mark.parametrize(
    "given", ["collector:4318", "grpc://c:4317", "http:///x", "http://c:99999", "http://c/?key=v", "http://c\n/", ""]
)
def test_what_is_not_a_collector_is_refused_without_quoting_it(tmp_path: Path, given: str):
    with pytest.raises(SettingsError) as refused:
        read({"otel": given}, {}, tmp_path)
    assert "http://HOST:4318" in refused.value.what
    assert not given or given not in refused.value.what


def test_a_password_on_the_command_line_is_refused(tmp_path: Path):
    with pytest.raises(SettingsError) as refused:
        read({"otel": "https://me:secret-word@c.example/"}, {}, tmp_path)
    assert "secret-word" not in str(refused.value) and "env:NAME" in refused.value.hint


@pytest.mark.parametrize("share", ["0", "-1", "1.1", "nan", "x", True, None])
def test_a_sample_is_a_share(tmp_path: Path, share: Any):
    (tmp_path / "trotline.toml").write_text('otel = "http://c:4318"\n')
    if share is None:
        assert read({}, {}, tmp_path).otel_sample == 0.01
        return
    with pytest.raises(SettingsError, match="not a share"):
        read({"otel_sample": share}, {}, tmp_path)


def test_a_missing_extra_is_named_before_worker_processes_start(monkeypatch: pytest.MonkeyPatch):
    components.check_tracer("")
    components.check_tracer("http://c:4318/v1/traces")
    monkeypatch.setattr(components, "find_spec", lambda name: None)
    components.check_tracer("")
    with pytest.raises(SettingsError) as refused:
        components.check_tracer("http://c:4318/v1/traces")
    assert "pip install '.[otel]'" in refused.value.hint


def test_without_metrics_and_traces_their_libraries_are_not_loaded():
    """Also not the server of aiohttp, by what is ours."""
    code = (
        "import sys, trotline.processes.child as child, trotline.commands.run, trotline.commands.work,"
        " trotline.commands.coordinate; child.warm_up();"
        " print([name for name in sys.modules if name.startswith(('opentelemetry', 'prometheus_client',"
        " 'trotline.adapters.otel', 'trotline.adapters.prometheus', 'trotline.config.logs', 'requests', 'google'))])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"

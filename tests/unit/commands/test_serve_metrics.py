import sys

import pytest

from trotline.commands.serve_metrics import metrics_at
from trotline.errors import SettingsError


async def test_without_an_address_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    async with metrics_at("", workers=True) as metrics:
        assert metrics is None


async def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch):
    for name in ("endpoint", "exposition"):
        monkeypatch.delitem(sys.modules, f"trotline.adapters.prometheus.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(SettingsError) as refused:
        async with metrics_at("127.0.0.1:1", workers=True):
            raise AssertionError("it cannot be served")
    assert "pip install '.[metrics]'" in refused.value.hint

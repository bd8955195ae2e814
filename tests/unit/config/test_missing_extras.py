"""An optional dependency that is not installed."""

import sys

import pytest

from trotline.config.backends import open_jobs
from trotline.errors import SettingsError


async def test_an_extra_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    # As on a machine without it, also when another test has imported it already.
    monkeypatch.delitem(sys.modules, "trotline.adapters.redis.connect", raising=False)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(SettingsError) as caught:
        await open_jobs("redis://:secret@nowhere/0")
    assert "'.[redis]'" in caught.value.hint
    assert "secret" not in str(caught.value)

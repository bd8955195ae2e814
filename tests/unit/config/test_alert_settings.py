"""The table [alerts]: what is read, and what is refused before an alert is missed."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from trotline.config.alert_receivers import open_receivers
from trotline.config.alert_settings import _RULES, AlertSettings, ReceiverSettings, read_alerts
from trotline.config.settings import read
from trotline.errors import SettingsError
from trotline.model.alert import Severity
from trotline.model.secret import Secret
from trotline.rules.alerts import AlertRules

HOOK = "https://hooks.example/T0001/secret-part-of-the-address"


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HOOK", HOOK)
    monkeypatch.setenv("SIGNING", "0123456789abcdef")
    monkeypatch.setenv("MAIL_PASSWORD", "correct horse")

    def given(text: str) -> AlertSettings:
        (tmp_path / "trotline.toml").write_text(text)
        return read_alerts(tmp_path)

    return given


def test_without_a_table_the_usual_thresholds_count(tmp_path: Path) -> None:
    assert read_alerts(tmp_path) == AlertSettings()


def test_thresholds_and_rules_that_are_off(given: Any) -> None:
    found = given(
        '[alerts]\noff = ["queue", "worker"]\nerrors = 0.5\nstalled = "10m"\nqueue_least = 5000\n'
        'link = "https://dash.example/"\n'
    )
    assert (found.rules.off, found.rules.errors, found.rules.stalled) == (("queue", "worker"), 0.5, 600.0)
    assert (found.rules.queue_least, found.link) == (5000, "https://dash.example")


def test_every_threshold_can_be_set() -> None:
    assert set(_RULES) == set(AlertRules.__struct_fields__)


def test_receivers_of_all_kinds(given: Any) -> None:
    found = given(
        '[alerts.receivers.ops]\nwebhook = "http://127.0.0.1:9093/hook"\nkey = "env:SIGNING"\n'
        '[alerts.receivers.chat]\nslack = "env:HOOK"\nseverity = "critical"\n'
        '[alerts.receivers.post]\nmail = ["a@example.org", "b@example.org"]\nserver = "smtp://mail.example:587"\n'
        'from = "trotline@example.org"\nuser = "trotline"\npassword = "env:MAIL_PASSWORD"\n'
    )
    assert [(one.name, one.kind, one.least) for one in found.receivers] == [
        ("ops", "webhook", Severity.WARNING),
        ("chat", "slack", Severity.CRITICAL),
        ("post", "mail", Severity.WARNING),
    ]
    assert [one.place for one in open_receivers(found)] == [
        "webhook at 127.0.0.1",
        "Slack-style webhook at hooks.example",
        "mail to a@example.org, b@example.org by mail.example",
    ]
    assert HOOK not in repr(found)
    assert "correct horse" not in repr(found)


def test_a_kind_that_nobody_makes_is_an_error_and_no_webhook() -> None:
    other = ReceiverSettings(name="ops", kind="chat", url=Secret(HOOK))
    with pytest.raises(ValueError, match="'chat'"):
        open_receivers(AlertSettings(receivers=(other,)))


MAIL = 'mail = "a@example.org"\nserver = "smtp://mail.example"\nfrom = "t@example.org"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[alerts]\nerors = 0.5\n", "Did you mean 'errors'?"),
        ('[alerts]\noff = ["que"]\n', "did you mean 'queue'?"),
        ("[alerts]\nerrors = 30\n", "share above 0 and at most 1"),
        ("[alerts]\nerrors = true\n", "share above 0 and at most 1"),
        ("[alerts]\nstalled = 300\n", 'text like "90s"'),
        ("[alerts]\nerrors = 0.1\n", "errors_clear is above errors"),
        ('[alerts]\nwindow = "2h"\n', "window is too long"),
        ("alerts = 3\n", "alerts is not a table"),
        ("[alerts]\nreceivers = 3\n", "receivers are tables"),
        ("[alerts.receivers.ops]\n", "needs one of: webhook, slack, mail"),
        ('[alerts.receivers.ops]\nwebhook = "https://a.example"\nslack = "env:HOOK"\n', "needs one of"),
        ('[alerts.receivers.ops]\nwebhok = "https://a.example"\n', "needs one of"),
        ('[alerts.receivers.ops]\nwebhook = "https://a.example"\nkeys = "env:SIGNING"\n', "Did you mean 'key'?"),
        ('[alerts.receivers.ops]\nwebhook = "ftp://a.example"\n', "must be an http or https URL"),
        ('[alerts.receivers.ops]\nwebhook = "https://user:pass@a.example"\n', "without login"),
        ('[alerts.receivers.ops]\nwebhook = "env:NOT_SET"\n', "NOT_SET is not set"),
        ('[alerts.receivers.ops]\nwebhook = "https://a.example"\nkey = "0123456789abcdef"\n', "is a secret"),
        ('[alerts.receivers.ops]\nwebhook = "https://a.example"\nkey = "env:HOME"\n', "16 characters or more"),
        (f'[alerts.receivers.ops]\nslack = "{HOOK}"\n', "is a secret: write it as env:NAME"),
        ('[alerts.receivers."a b"]\nslack = "env:HOOK"\n', "the name has other characters"),
        (f"[alerts.receivers.ops]\n{MAIL}password = 'secret'\n", "is a secret"),
        (f"[alerts.receivers.ops]\n{MAIL}user = 'u'\n", "user and password go together"),
        (f"[alerts.receivers.ops]\n{MAIL}user='u'\npassword='env:MAIL_PASSWORD'\ntls=false\n", "has no effect"),
        ('[alerts.receivers.ops]\nmail = "a@example.org"\n', "server is missing"),
        ('[alerts.receivers.ops]\nmail = "a@example.org\\r\\nBcc: b@example.org"\n', "must be a mail address"),
        ('[alerts.receivers.ops]\nmail = "a@example.org"\nserver = "smtp://u:p@mail.example"\n', "user and password"),
        ('[alerts]\nlink = "javascript:alert(1)"\n', "must be the address of the dashboard"),
    ],
)
def test_what_cannot_work_is_refused(given: Any, text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/root")
    with pytest.raises(SettingsError) as refused:
        given(text)
    assert said in str(refused.value)
    assert HOOK not in str(refused.value)
    assert "pass@" not in str(refused.value)


def test_the_table_is_no_unknown_setting_of_other_commands(tmp_path: Path) -> None:
    (tmp_path / "trotline.toml").write_text('slots = 8\n[alerts]\nstalled = "10m"\n')
    assert read({}, {}, tmp_path).slots == 8
    (tmp_path / "trotline.toml").write_text("[alert]\nerrors = 0.5\n")
    with pytest.raises(SettingsError, match="Did you mean 'alerts'"):
        read({}, {}, tmp_path)


def test_pyproject_works_as_well(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.trotline.alerts]\nerrors = 0.5\n")
    assert read_alerts(tmp_path).rules.errors == 0.5


def test_settings_can_be_compared_and_replaced() -> None:
    assert msgspec.structs.replace(AlertSettings(), link="https://x.example").link == "https://x.example"

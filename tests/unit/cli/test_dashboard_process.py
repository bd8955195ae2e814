"""What `trotline run --web` says about its dashboard."""

from trotline.cli.dashboard_process import _said


def test_the_token_is_for_the_terminal_and_not_for_a_log():
    said = _said("listening on http://127.0.0.1:8321/   (Ctrl-C ends it)", "t0ken")
    assert said.text == "dashboard: http://127.0.0.1:8321/login#t0ken"
    assert said.logged.startswith("dashboard: http://127.0.0.1:8321/ (")
    assert "t0ken" not in said.logged and "login#" not in said.logged


def test_a_dashboard_that_could_not_start_is_named_in_both():
    said = _said("it was not ready within 10 s", "t0ken")
    assert said == ("no dashboard: it was not ready within 10 s",) * 2

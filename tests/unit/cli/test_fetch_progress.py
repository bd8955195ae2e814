"""What `trotline fetch` shows while it waits, and how long it waits for a host."""

import sys

import pytest

from trotline.cli.fetch import _view
from trotline.cli.plain_views import Lines, Quiet
from trotline.commands.fetch import paced
from trotline.model.pace import Rate


@pytest.mark.parametrize(
    ("terminal", "quiet", "view"), [(True, False, Lines), (True, True, Quiet), (False, False, Quiet)]
)
def test_progress_is_shown_on_a_terminal(monkeypatch, terminal, quiet, view):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert isinstance(_view(quiet=quiet), view)


def test_a_host_that_only_fails_is_given_up_after_the_time_that_is_asked_for():
    assert paced(Rate.parse("1/s"), 45.0).rules.give_up == 45.0

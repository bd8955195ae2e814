"""Workers that archive are killed: nothing that was settled is missing. The long version: `make soak`."""

import pytest
from tests.contract.s3_servers import own_prefix, s3
from tests.e2e.archive_kills import kill_workers


@pytest.mark.slow("runs that are killed and go on")
@pytest.mark.parametrize("place", ["folder", "s3"])
def test_a_settled_page_is_in_the_archive_whatever_was_killed(tmp_path, place, monkeypatch):
    archive, environment = f"file:{tmp_path}/pages", {}
    if place == "s3":
        archive, environment = s3().url(own_prefix()), s3().environment
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
    outcome = kill_workers(tmp_path, archive, kills=1, products=120, environment=environment)
    assert outcome.kills == 1
    assert outcome.settled >= 120
    assert outcome.missing == []
    assert outcome.damages == []
    assert outcome.read_by_others >= 3 * 120

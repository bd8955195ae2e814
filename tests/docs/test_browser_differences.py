"""The list of faults that the clients treat differently: the documentation's is the tests'."""

import re

from tests.docs.pages import DOCS
from tests.e2e.torture.browser_differences import DIFFERENCES


def test_every_difference_between_the_clients_is_documented() -> None:
    page = (DOCS / "how-to" / "look-like-a-browser.md").read_text()
    listed = re.findall(r"`(/[a-z-]+/[a-z-]+)`", page.partition("## Differences")[2])
    assert sorted(listed) == sorted(DIFFERENCES)

"""Messages that the docs quote in passing are still in the source: whole sessions are run in test_tutorials.py."""

import re

import pytest

from tests.docs.pages import DOCS, ROOT

QUOTED = {
    "explain/architecture.md": ["visits wait to be stored"],
    "explain/fetching.md": [", again in "],
    "explain/leases-and-settling.md": ["workers died while they held it"],
    "explain/pace.md": ["rate limited: Retry-After", "failures in a row", "lane given up after", "of failures only"],
    "explain/poison-pages.md": [
        "reading its page",
        "crashed the worker",
        "took longer than",
        "ended the worker",
        "got the worker killed",
        "links that only recombine query parameters",
        "pages alike",
    ],
    "explain/what-happens-when.md": ["frontier is unreachable"],
    "how-to/debug-a-page.md": ["no estimate yet: still finding new pages", "the handler failed"],
    "how-to/fetchers-without-a-database.md": ["parcels wait for a writer"],
    "how-to/log-in.md": ["the process that had logged in is gone"],
    "how-to/recrawl.md": ["dropped: unchanged"],
    "how-to/trace-a-url.md": [
        "is the same page as",
        "look at the grave",
        "see what comes of it now",
        "visited, but not read",
        "waiting for its turn",
        "being visited now",
        "never entered",
        "never seen by this job",
    ],
    "how-to/use-a-proxy.md": ["authentication failed", "refused to connect"],
    "reference/cli.md": ["no estimate yet: still finding new pages"],
    "reference/exit-codes.md": ["finished, but cut by limits"],
    "reference/settings.md": ["the run ends in"],
}
"""Page -> parts of messages, without the values that the program fills in."""


def source() -> str:
    """All Python and Lua files, with literals that are split over lines joined."""
    text = "\n".join(path.read_text() for ending in ("py", "lua") for path in (ROOT / "src").rglob(f"*.{ending}"))
    return re.sub(r'"\s*\n\s*f?"', "", text)


@pytest.fixture(scope="module")
def printed() -> str:
    return source()


@pytest.mark.parametrize(("page", "message"), [(page, message) for page, some in QUOTED.items() for message in some])
def test_a_message_that_a_page_quotes_is_one_that_the_program_prints(page: str, message: str, printed: str) -> None:
    assert message in " ".join((DOCS / page).read_text().split()), f"docs/{page} no longer quotes it: remove it here"
    assert message in printed, f"the program prints something else now: change docs/{page}"

"""What every test needs."""

from collections.abc import Iterator

import pytest

from trotline.model import secret
from trotline.rules import redaction


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests() -> Iterator[None]:
    """A process knows its secrets for ever; tests share a process, and one's secret is another's file name."""
    yield
    secret._known.clear()
    redaction._also.clear()

"""What every test needs."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from trotline.model import secret
from trotline.rules import redaction

# A busy machine takes 200 ms to give one example its turn; that says nothing about the code.
settings.register_profile("busy machines", deadline=None)
settings.load_profile("busy machines")


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests() -> Iterator[None]:
    """A process knows its secrets for ever; tests share a process, and one's secret is another's file name."""
    yield
    secret._known.clear()
    secret._longest_first = ()
    redaction._also.clear()

"""What every test needs."""

import gc
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import distribution
from trotline.model import secret
from trotline.rules import redaction

# A busy machine takes 200 ms to give one example its turn, or to make one; that says nothing about the code.
settings.register_profile("busy machines", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# For `make check`; `make test` makes all 100 examples.
settings.register_profile("brief", settings.get_profile("busy machines"), max_examples=25)
settings.load_profile("busy machines")
# A shell starts what runs in the background deaf to Ctrl-C, and so would be every command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests() -> Iterator[None]:
    """A process knows its secrets for ever; tests share a process, and one's secret is another's file name."""
    yield
    secret._known.clear()
    secret._longest_first = ()
    redaction._also.clear()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    distribution.collected(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests and their modules stay until the end. Every full garbage collection would go through all of
    them, for a twelfth of the processor time of `make check`."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    distribution.tell_file(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """For any `-n`, with or without `--dist`."""
    return distribution.scheduler(config, log)

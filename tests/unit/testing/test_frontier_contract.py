"""The contract suite of frontiers is complete: a class of tests that is no base of it would never run."""

import importlib
import inspect
import pkgutil

from trotline.testing import frontier_contract
from trotline.testing.frontier_contract import FrontierContract


def test_every_class_of_promises_is_a_base_of_the_contract():
    found = {
        kind
        for module in pkgutil.iter_modules(frontier_contract.__path__, f"{frontier_contract.__name__}.")
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        if kind.__module__ == module.name and kind.__name__.endswith(("Promises", "Histories"))
    }
    assert len(found) > 25
    assert {kind.__name__ for kind in found if not issubclass(FrontierContract, kind)} == set()


def test_every_class_with_tests_is_named_as_promises_or_histories():
    """Or the test above would not see it."""
    for module in pkgutil.iter_modules(frontier_contract.__path__, f"{frontier_contract.__name__}."):
        for name, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and any(member.startswith("test_") for member in vars(kind)):
                assert name.endswith(("Promises", "Histories")), f"{module.name}.{name}"

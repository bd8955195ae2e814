"""What the source itself must not contain: ways to run what somebody else wrote."""

import ast
import tomllib
from pathlib import Path

import pytest

from tests.unit.source_nodes import source_nodes

# One process parses all of our files.
pytestmark = pytest.mark.xdist_group("source")
ROOT = Path(__file__).parents[2]
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "code", "jsonpickle"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "tempfile.mktemp"}
ALLOWED_MODULES = {
    ("cli/shell_console.py", "code"): "the interactive session runs what its user types",
    ("rules/safe_pickle.py", "pickle"): "the queue of scrapy-redis, read by a reader that finds no class",
}
IMPORT_BY_NAME = {
    "__init__.py": "our own names, from a table in the code",
    "adapters/files/export.py": "pyarrow, if it is installed",
    "config/components.py": "opentelemetry, if it is installed",
    "config/backends.py": "our own adapters, from a list in the code",
    "processes/child.py": "our own modules, named in the code",
    "config/spider_loader.py": "the spider that the author named on the command line",
    "cli/doctor_machine.py": "packages named in the code",
    "cli/main.py": "our own commands, from a table in the code",
    "config/code_version.py": "the author's spider on the command line, whose code version is asked for",
    "spider/spider_checks.py": "packages of HTTP clients, from a table in the code",
    "testing/postgres_server.py": "the wheel with a PostgreSQL in it",
    "testing/redis_server.py": "the wheel with a Valkey in it",
    "testing/sqs_server.py": "the wheel with an SQS in it",
    "testing/__init__.py": "our own names, from a table in the code",
}
"""The only files that import by name, and whose name it is: never one from a page, a queue or a database."""


def dotted(called: ast.expr) -> str:
    """As it is written, with "?" for what is not a name: `?.import_module`. ast.unparse would take seconds for all."""
    if isinstance(called, ast.Attribute):
        return f"{dotted(called.value)}.{called.attr}"
    return called.id if isinstance(called, ast.Name) else "?"


def test_nothing_unpickles_or_loads_yaml() -> None:
    found = []
    for file, node in source_nodes().imports:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        found += [(file, one) for one in names if one.partition(".")[0] in FORBIDDEN_MODULES]
    assert set(found) <= ALLOWED_MODULES.keys()


def test_nothing_evaluates_text_or_calls_a_shell() -> None:
    found = []
    for file, node in source_nodes().calls:
        shell = any(
            word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)
            for word in node.keywords
        )
        called = dotted(node.func)
        if called in FORBIDDEN_CALLS or called.endswith("create_subprocess_shell") or shell:
            found.append((file, node.lineno, called))
    assert found == []


def test_no_module_is_imported_by_a_name_from_data() -> None:
    found = {
        file
        for file, node in source_nodes().calls
        if dotted(node.func).rpartition(".")[2]
        in ("import_module", "exec_module", "spec_from_file_location", "find_spec")
    }
    assert found <= set(IMPORT_BY_NAME)
    assert len(found) > 5, "it found them"


def test_the_linter_looks_for_the_same_in_every_commit() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "S" in lint["select"]
    in_source = {rule for files, rules in lint["per-file-ignores"].items() if files.startswith("src") for rule in rules}
    assert not {rule for rule in in_source if rule.startswith(("S3", "S5", "S6")) and rule not in ("S311", "S608")}
    assert not any(rule.startswith("S") for rule in lint["ignore"] if rule[1:].isdecimal())


def test_calls_are_found_however_they_are_reached() -> None:
    tree = ast.parse("os.system('x'); eval('y'); a[0].b().import_module('z'); (lambda: 1)()")
    called = [dotted(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert called == ["os.system", "eval", "?.import_module", "?", "?.b"]

"""What the source itself must not contain: ways to run what somebody else wrote."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

# One process parses all of our files.
pytestmark = pytest.mark.xdist_group("source")
ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "trotline").rglob("*.py"))
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "code", "jsonpickle"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "tempfile.mktemp"}
ALLOWED_MODULES = {
    ("trotline/cli/shell.py", "code"): "the interactive session runs what its user types",
    ("trotline/rules/plain_pickle.py", "pickle"): "the queue of scrapy-redis, read by a reader that finds no class",
}
IMPORT_BY_NAME = {
    "trotline/__init__.py": "our own names, from a table in the code",
    "trotline/adapters/files/export.py": "pyarrow, if it is installed",
    "trotline/config/components.py": "opentelemetry, if it is installed",
    "trotline/config/backends.py": "our own adapters, from a list in the code",
    "trotline/processes/child.py": "our own modules, named in the code",
    "trotline/config/spider_loader.py": "the spider that the author named on the command line",
    "trotline/cli/doctor.py": "packages named in the code",
    "trotline/cli/main.py": "our own commands, from a table in the code",
    "trotline/config/code_version.py": "the author's spider on the command line, whose code version is asked for",
    "trotline/spider/spider_checks.py": "packages of HTTP clients, from a table in the code",
    "trotline/testing/postgres_server.py": "the wheel with a PostgreSQL in it",
    "trotline/testing/redis_server.py": "the wheel with a Valkey in it",
    "trotline/testing/sqs_server.py": "the wheel with an SQS in it",
    "trotline/testing/__init__.py": "our own names, from a table in the code",
}
"""The only files that import by name, and whose name it is: never one from a page, a queue or a database."""


def name(source: Path) -> str:
    return str(source.relative_to(ROOT / "src"))


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield dotted(node.func), node


def dotted(called: ast.expr) -> str:
    """As it is written, with "?" for what is not a name: `?.import_module`. ast.unparse would take seconds for all."""
    if isinstance(called, ast.Attribute):
        return f"{dotted(called.value)}.{called.attr}"
    return called.id if isinstance(called, ast.Name) else "?"


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.AST]:
    return {name(source): ast.parse(source.read_text()) for source in SOURCES}


def test_nothing_unpickles_or_loads_yaml(trees: dict[str, ast.AST]) -> None:
    found = []
    for file, tree in trees.items():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found += [(file, one) for one in names if one.partition(".")[0] in FORBIDDEN_MODULES]
    assert set(found) <= ALLOWED_MODULES.keys()


def test_nothing_evaluates_text_or_calls_a_shell(trees: dict[str, ast.AST]) -> None:
    found = []
    for file, tree in trees.items():
        for called, node in calls(tree):
            shell = any(
                word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)
                for word in node.keywords
            )
            if called in FORBIDDEN_CALLS or called.endswith("create_subprocess_shell") or shell:
                found.append((file, node.lineno, called))
    assert found == []


def test_no_module_is_imported_by_a_name_from_data(trees: dict[str, ast.AST]) -> None:
    found = {
        file
        for file, tree in trees.items()
        for called, _ in calls(tree)
        if called.rpartition(".")[2] in ("import_module", "exec_module", "spec_from_file_location", "find_spec")
    }
    assert found <= set(IMPORT_BY_NAME)


def test_the_linter_looks_for_the_same_in_every_commit() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "S" in lint["select"]
    in_source = {rule for files, rules in lint["per-file-ignores"].items() if files.startswith("src") for rule in rules}
    assert not {rule for rule in in_source if rule.startswith(("S3", "S5", "S6")) and rule not in ("S311", "S608")}
    assert not any(rule.startswith("S") for rule in lint["ignore"] if rule[1:].isdecimal())


def test_calls_are_found_however_they_are_reached() -> None:
    tree = ast.parse("os.system('x'); eval('y'); a[0].b().import_module('z'); (lambda: 1)()")
    assert [called for called, _ in calls(tree)] == ["os.system", "eval", "?.import_module", "?", "?.b"]

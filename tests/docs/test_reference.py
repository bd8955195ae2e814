"""Every command, option, setting, argument and port verb is in the reference."""

import importlib
import inspect
import pkgutil
import re
from typing import Any, Protocol

import click
import pytest

import trotline
from tests.docs.pages import REFERENCE, ROOT, section
from trotline import Limits, Page, Selection, Spider, ports
from trotline.cli import main as command_line
from trotline.config.settings import NAMES
from trotline.spider.task_drafts import Draft

SPIDER = (REFERENCE / "spider.md").read_text()
COMMANDS = tuple(command_line.trotline.list_commands(click.Context(command_line.trotline)))


def command(name: str) -> click.Command:
    found = command_line.trotline.get_command(click.Context(command_line.trotline), name)
    assert found is not None
    return found


def verbs_of(group: click.Command) -> list[click.Command]:
    """The commands of a group, as in `trotline db status`."""
    return list(group.commands.values()) if isinstance(group, click.Group) else []


def options_of(each: click.Command) -> list[str]:
    return [option for parameter in each.params for option in parameter.opts if option.startswith("--")]


def verbs() -> list[tuple[str, str]]:
    """(port, verb) of every Protocol in trotline.ports."""
    found = []
    for module in pkgutil.iter_modules(ports.__path__):
        for port in vars(importlib.import_module(f"trotline.ports.{module.name}")).values():
            if inspect.isclass(port) and Protocol in port.__bases__:
                found += [(port.__name__, name) for name in vars(port) if not name.startswith("_")]
    return found


def unsaid(names: Any, text: str) -> list[str]:
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section_with_each_of_its_options(name: str) -> None:
    text = section(REFERENCE / "cli.md", f"trotline {name}")
    settings = (REFERENCE / "settings.md").read_text()
    options = [option for each in (command(name), *verbs_of(command(name))) for option in options_of(each)]

    assert text, f"docs/reference/cli.md has no section for trotline {name}"
    assert unsaid(options, text + settings) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_a_section_with_its_variable(name: str) -> None:
    assert f"TROTLINE_{name.upper()}" in section(REFERENCE / "settings.md", name)


@pytest.mark.parametrize(("port", "verb"), verbs())
def test_every_verb_of_a_port_is_in_its_section(port: str, verb: str) -> None:
    told = section(REFERENCE / "ports.md", port)
    assert f"`{verb}(" in told or f"`{verb}`" in told


def test_ports_are_found_at_all() -> None:
    assert {("Frontier", "lease"), ("Sink", "write"), ("Fetcher", "fetch"), ("Console", "revive")} <= set(verbs())


def test_every_argument_of_a_spider_is_explained() -> None:
    names = [f"`{name}`" for name in inspect.signature(Spider).parameters]
    assert [name for name in names if name not in section(REFERENCE / "spider.md", "Spider(name, ...)")] == []


def test_every_argument_of_a_route_is_explained() -> None:
    names = [f"`{name}`" for name in inspect.signature(Spider.page).parameters if name not in ("self", "handler")]
    assert [name for name in names if name not in section(REFERENCE / "spider.md", "@spider.page")] == []


def test_every_field_of_a_task_draft_is_explained() -> None:
    names = [f"`{name}`" for name in Draft.__annotations__]
    assert [name for name in names if name not in section(REFERENCE / "spider.md", "route.task(url, ...)")] == []


def test_every_public_name_is_listed() -> None:
    assert [name for name in trotline.__all__ if f"`{name}`" not in SPIDER and name != "__version__"] == []


def test_everything_a_page_and_a_selection_can_do_is_in_the_reference() -> None:
    page = (REFERENCE / "page.md").read_text()
    assert unsaid((name for name in vars(Page) if not name.startswith("_")), page) == []
    assert unsaid((name for name in vars(Selection) if not name.startswith("_")), page) == []


def test_every_limit_is_in_the_reference() -> None:
    assert unsaid(Limits.__struct_fields__, (REFERENCE / "limits.md").read_text()) == []


def test_every_exit_code_is_in_the_reference() -> None:
    codes = {value for name, value in vars(command_line).items() if name.isupper() and isinstance(value, int)}
    text = (REFERENCE / "exit-codes.md").read_text()

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.M)} == codes


def test_every_command_stands_once_in_the_reference() -> None:
    headings = re.findall(r"^## trotline (\w+)$", (REFERENCE / "cli.md").read_text(), re.M)

    assert sorted(headings) == sorted(COMMANDS)


def test_every_row_of_bad_input_has_tests_named_after_it_and_every_such_test_its_row() -> None:
    rows = dict(re.findall(r"^\| B(\d+) \| (.*) \|$", (REFERENCE / "fault-list.md").read_text(), re.M))
    tests = {
        number for file in ROOT.glob("tests/**/*.py") for number in re.findall(r"def test_b(\d+)_", file.read_text())
    }
    # The page says why: no input is known that crashes the parser, and there is no HTTP API yet.
    assert set(rows) - tests == {"54", "80"}
    assert tests <= set(rows)

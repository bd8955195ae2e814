"""Commands that are suggested: with the places and ways out of the one that was typed, so that they work as shown."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from trotline.cli.main import trotline
from trotline.config.backend_urls import repeatable
from trotline.model.job import Job
from trotline.rules import redaction

CARRIED = ("frontier", "inbox", "sink", "archive", "out", "allow_private", "allow", "proxy", "proxy_mode", "proxies")
"""Options that say where things are and what may be visited: another command about the same job needs them too."""


def typed() -> str:
    """The command that was typed, without what must not be repeated: --fresh would start a new job."""
    return shlex.join(["trotline", *(redaction.text(word) for word in sys.argv[1:] if word != "--fresh")])


def same(name: str, *words: str, command: str | None = None, job: Job | None = None) -> str:
    """`trotline NAME WORDS`, and those of the carried options that NAME knows: of `command`, or of the one at work; and
    which private addresses the job may visit."""
    options = [word for option in _carried(name, _given(command)) for word in option]
    if job is not None and not any(word.startswith("--allow") for word in options):
        options += job.rules.allowed
    return shlex.join(["trotline", name, *words, *options])


def as_typed(*options: str) -> list[str]:
    """Those of the command at work that were given, for one more command of the same name."""
    context = click.get_current_context(silent=True)
    if context is None:
        return []
    flags = _flags(context.command)
    return [word for name in options for word in _words(flags[name], context.params.get(name), redaction.text)]


def file_in(command: str) -> str:
    """The spider's file in a command as it was typed; FILE if there is none."""
    return str(_given(command).get("spider") or "FILE")


def file_of(spider: str) -> str:
    """What to call the file of a spider that is known by its name: the one that `trotline new` would have made."""
    return file_here(spider) or "FILE"


def file_here(spider: str) -> str:
    """The spider's file in this folder, by its name; empty if there is none."""
    return next((name for name in (f"{spider}.py", f"{spider}.toml") if Path(name).is_file()), "")


def _given(command: str | None) -> Mapping[str, Any]:
    if command is None:
        context = click.get_current_context(silent=True)
        return context.params if context is not None else {}
    _, name, *words = [*shlex.split(command), ""]
    above = click.Context(trotline)
    found = trotline.get_command(above, name)
    if found is None:
        return {}
    # Resilient: it was parsed and checked when it was typed.
    return found.make_context(name, words[:-1], parent=above, resilient_parsing=True).params


def _carried(name: str, given: Mapping[str, Any]) -> Iterator[list[str]]:
    found = trotline.get_command(click.Context(trotline), name)
    flags = _flags(found) if found is not None else {}
    if "out" not in flags and given.get("out"):
        given = {**given, "sink": given["out"], "out": None}
    for option in CARRIED:
        if option in flags:
            is_place = option in ("frontier", "inbox", "sink", "archive")
            yield _words(flags[option], given.get(option), repeatable if is_place else redaction.text)


def _flags(command: click.Command) -> dict[str, str]:
    return {param.name: param.opts[0] for param in command.params if param.name}


def _words(flag: str, value: Any, shown: Callable[[str], str]) -> list[str]:
    """Empty if the option was not given."""
    if value is None or value is False or value in ("", ()):
        return []
    if value is True:
        return [flag]
    values = value if isinstance(value, tuple) else (value,)
    return [word for each in values for word in (flag, shown(str(each)))]

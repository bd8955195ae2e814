"""The list of log events is complete, and has nothing that never happens."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import REFERENCE, ROOT
from trotline.commands import work_events, write
from trotline.rules.log_lines import EVENT, OTHER

SOURCE = ROOT / "src" / "trotline"
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
_ROW = re.compile(r"^\| `([a-z][\w.-]*)` \| ([a-z, ]+) \| .+ \|$", re.MULTILINE)


def told() -> list[str]:
    rows = _ROW.findall((REFERENCE / "events.md").read_text())
    return [name for name, levels in rows if levels.strip()]


def calls() -> Iterator[tuple[Path, ast.Call]]:
    for file in sorted(SOURCE.rglob("*.py")):
        if "testing" not in file.parts:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call):
                    yield file, node


def text(node: ast.AST | None) -> str:
    """The constant begin of a string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and node.values:
        return text(node.values[0])
    return ""


def logged(call: ast.Call) -> str | None:
    """The event of a log call; None if it is not one."""
    called = call.func
    if not isinstance(called, ast.Attribute) or called.attr not in LEVELS:
        return None
    if not isinstance(called.value, (ast.Name, ast.Attribute)):
        return None
    owner = called.value.id if isinstance(called.value, ast.Name) else called.value.attr
    if owner not in ("log", "_log"):
        return None
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            for name, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if text(name) == "event":
                    return text(value) or "given"
    message = call.args[1 if called.attr == "log" else 0]
    return text(message).partition(" ")[0]


def emitted(call: ast.Call) -> str | None:
    """The event of a coordinator, or one that a command announces."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("_emit", "_emit_finish", "announce", "_event") and call.args:
        found = text(call.args[0])
        return found if EVENT.fullmatch(found) else None
    if name == "event" and len(call.args) == 3:
        # Of the web server: logger, level, name.
        return text(call.args[2]) or None
    if name in ("CoordinatorEvent", "log_line"):
        return next((text(word.value) or None for word in call.keywords if word.arg == "event"), None)
    return None


def in_the_code() -> set[str]:
    found = set()
    for _, call in calls():
        found |= {event for event in (logged(call), emitted(call)) if event and event != "given"}
    outages = {"frontier.unreachable", "beat.failed", "inbox.unreachable", "feed.unwritable", "sink.unreachable"}
    found |= outages | {f"{event}.over" for event in outages}
    found |= {f"worker.{what.name.lower()}" for what in work_events.What}
    found |= {f"write.{what.value}" for what in write.What}
    constants = re.findall(r'^(?:OUTPUT|DROPPED) = "(.+)"', (SOURCE / "rules" / "child_log.py").read_text(), re.M)
    alerts = re.findall(r'"(alert\.[a-z]+)"', (SOURCE / "coordinator" / "alert_watch.py").read_text())
    fleet = re.findall(r'"(fleet\.[a-z_]+)"', (SOURCE / "commands" / "fleet.py").read_text())
    return found | set(constants) | set(alerts) | set(fleet) | {"command.output", OTHER}


def test_every_log_call_names_its_event():
    nameless = [
        f"{file.relative_to(SOURCE)}:{call.lineno}"
        for file, call in calls()
        if (event := logged(call)) is not None and event != "given" and not EVENT.fullmatch(event)
    ]
    # The first word of an outage's line is a variable.
    assert nameless == []


def test_the_list_has_every_event_and_no_other():
    assert set(told()) == in_the_code()


def test_no_event_is_listed_twice():
    assert len(told()) == len(set(told()))


def test_events_are_found_at_all():
    assert {"child.hangs", "alert.raised", "visit.settled", "worker.joined", "run.ended"} <= in_the_code()

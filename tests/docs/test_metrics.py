"""The metrics page, the dashboard and the alert rules name what is exported, and nothing else."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import REFERENCE, ROOT
from trotline.adapters.prometheus.catalogue import METRICS, STATES
from trotline.model.job import State
from trotline.model.verdict import Kind
from trotline.model.work_stats import NO_REQUEST, SlotSeconds
from trotline.rules import alert_rules, alerts

PAGE = (REFERENCE / "metrics.md").read_text()
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
RULE_TESTS = ROOT / "deploy" / "prometheus" / "alerts_test.yml"
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "trotline.json").read_text())
_ROW = re.compile(r"^\| `(trotline_\w+)` \| (\w+) \| ([^|]*) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_PARTS = ("_bucket", "_sum", "_count")


def exported() -> dict[str, tuple[str, ...]]:
    """Every name that can stand in an expression, with its labels."""
    found = {}
    for metric in METRICS:
        if metric.kind == "histogram":
            found |= {metric.name + part: (*metric.labels, *(("le",) if part == "_bucket" else ())) for part in _PARTS}
        else:
            found[metric.name] = metric.labels
    return found


def expressions() -> list[tuple[str, str]]:
    """(where, expression) of the dashboard and the rules."""
    found = [
        (f"panel {panel['title']}", target["expr"])
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", [])
    ]
    rules = re.findall(r"- alert: (\w+)\n\s+expr: (?:\|\n((?:\s{10,}.+\n)+)|(.+)\n)", RULES.read_text())
    return found + [(f"rule {name}", block or line) for name, block, line in rules]


def promtool() -> str:
    # Not in requirements/debian.txt: the package has 330 MB with what it needs.
    found = shutil.which("promtool") or os.environ.get("PROMTOOL")
    if found is None:
        pytest.skip("promtool is not installed. Try: apt-get install prometheus, or set PROMTOOL to its path")
    return found


def test_the_page_has_every_metric_with_its_type_and_labels():
    told = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels, _, _ in _ROW.findall(PAGE)}
    assert told == {metric.name: (metric.kind, metric.labels) for metric in METRICS}


def test_the_page_names_every_phase_and_state():
    for phase in SlotSeconds.__struct_fields__:
        assert f"| `{phase}` |" in PAGE
    for state in STATES:
        assert f"`{state}`" in PAGE
    assert set(STATES) == {*State, "finished"}


def test_units_are_at_the_end_of_names():
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert not set(metric.labels) & {"url", "lane", "proxy", "worker"}, "their number has no limit"


def test_expressions_are_found_at_all():
    assert len([where for where, _ in expressions() if where.startswith("rule")]) == RULES.read_text().count("- alert:")
    assert len(expressions()) > 30


@pytest.mark.parametrize(("where", "expression"), expressions())
def test_every_expression_names_exported_metrics_labels_and_values(where: str, expression: str):
    known = exported()
    names = re.findall(r"\btrotline_\w+", expression)
    assert names and set(names) <= set(known), where
    for name, selector in re.findall(r"\b(trotline_\w+)\{([^}]*)\}", expression):
        for label, value in re.findall(r'(\w+)\s*[=!~]+\s*"([^"]*)"', selector):
            assert label in known[name], (where, label)
            verdicts = {*Kind, NO_REQUEST}
            assert label != "verdict" or set(value.split("|")) <= verdicts, (where, value)
    for labels in re.findall(r"\bby \(([^)]*)\)", expression):
        allowed = {"instance", *(label for name in names for label in known[name])}
        assert {label.strip() for label in labels.split(",")} <= allowed, (where, labels)


def test_the_rules_of_the_coordinator_are_complete():
    """A rule that does not fire is exported as 0: so all of them must be known."""
    assert set(alerts.RULES) == set(alert_rules._RULES)


def test_the_dashboard_has_no_two_panels_in_one_place():
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells


def test_the_expressions_of_the_dashboard_are_right(tmp_path: Path):
    """As recording rules: promtool has no other parser for them."""
    tool = promtool()
    rules = []
    for number, (where, expression) in enumerate(expressions()):
        if where.startswith("panel"):
            plain = expression.replace("$__rate_interval", "5m").replace("$crawl", ".*")
            rules.append({"record": f"panel_{number}", "expr": plain})
    file = tmp_path / "panels.json"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    checked = subprocess.run([tool, "check", "rules", str(file)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_alert_rules_are_right_and_do_what_their_tests_say():
    tool = promtool()
    for words in (["check", "rules", str(RULES)], ["test", "rules", str(RULE_TESTS)]):
        checked = subprocess.run([tool, *words], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_rule_has_a_test():
    names = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
    assert names == set(re.findall(r"alertname: (\w+)", RULE_TESTS.read_text()))

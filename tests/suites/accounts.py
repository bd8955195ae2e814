"""The account of one suite: how many cases, and exactly which ones do not come out as the suite says.

Those stand in `exceptions/NAME.json` with their reason. One that is not there fails the test, and so does one that is
there and passes: the list stays true.
"""

import json
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "public-suites.md"


def check(name: str, outcomes: Mapping[str, str]) -> None:
    """`outcomes`: case -> what differs, empty when it passes."""
    differing = {case: what for case, what in outcomes.items() if what}
    listed = _listed(name)
    new = {case: what for case, what in differing.items() if case not in listed}
    fixed = sorted(listed - set(differing))
    assert not new, f"{name}: {len(new)} of {len(outcomes)} cases differ:\n" + "\n".join(
        f"  {case}: {what}" for case, what in list(new.items())[:40]
    )
    assert not fixed, f"{name}: listed as different, but they pass now: {fixed}"
    row = f"| {name} | {len(outcomes):,} | {len(outcomes) - len(differing):,} | {len(differing):,} |"
    assert row in PAGE.read_text(encoding="utf-8"), f"{PAGE.name} should have the row: {row}"


def _listed(name: str) -> set[str]:
    path = HERE / "exceptions" / f"{name}.json"
    if not path.exists():
        return set()
    reasons: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    cases = [case for listed in reasons.values() for case in listed]
    assert len(cases) == len(set(cases)), f"{path.name} lists a case twice"
    return set(cases)

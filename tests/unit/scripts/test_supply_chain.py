"""The bill of materials names every locked package, and the audit finds what OSV's files say about them."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from scripts import supply_chain
from scripts.supply_chain import Locked, bill, holes, locked, main

TEA = Locked("tea-pot", "1.5.0", ("ab" * 32,), "run")


def advisory(**affected: Any) -> dict[str, Any]:
    package = {"ecosystem": "PyPI", "name": "Tea_Pot"}
    return {
        "id": "PYSEC-1",
        "summary": "it leaks",
        "modified": "2026-01-01",
        "affected": [{"package": package, **affected}],
    }


def ranged(*events: dict[str, str]) -> dict[str, Any]:
    return advisory(ranges=[{"type": "ECOSYSTEM", "events": list(events)}])


def test_the_bill_names_every_pinned_line_of_the_locks_with_its_hashes() -> None:
    packages = locked()
    pinned = {
        line.split("==")[0]
        for lock in supply_chain.LOCKS
        for line in (supply_chain.ROOT / "requirements" / f"{lock}.txt").read_text().splitlines()
        if "==" in line and not line.startswith(" ")
    }
    told = bill(packages, "0.1.0")

    assert {one["name"] for one in told["components"]} == pinned
    assert all(one["externalReferences"][0]["hashes"] for one in told["components"])
    assert len({one["bom-ref"] for one in told["components"]}) == len(packages)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.5")
    assert "pkg:pypi/aiohttp@" in "".join(told["dependencies"][0]["dependsOn"])


def test_the_same_locks_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        assert main(["sbom", str(tmp_path / name)]) == 0

    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (advisory(versions=["1.4", "1.5.0"]), True),
        (advisory(versions=["1.4"]), False),
        (ranged({"introduced": "0"}), True),
        (ranged({"introduced": "0"}, {"fixed": "1.5.0"}), False),
        (ranged({"introduced": "1.5"}, {"fixed": "1.5.1"}), True),
        (ranged({"introduced": "1"}, {"last_affected": "1.5.0"}), True),
        (ranged({"introduced": "1"}, {"last_affected": "1.4.9"}), False),
        (ranged({"introduced": "0"}, {"fixed": "1.2"}, {"introduced": "1.4"}, {"fixed": "1.6"}), True),
        (ranged({"introduced": "2"}), False),
        (advisory(versions=["1.5.0"]) | {"withdrawn": "2026-01-02"}, False),
    ],
)
def test_an_advisory_is_found_if_it_is_about_the_locked_version(record: dict[str, Any], found: bool) -> None:
    told = holes([TEA], iter([record]))

    assert told == (["tea-pot 1.5.0 (requirements/run.txt): PYSEC-1: it leaks"] if found else [])


def test_an_audit_reads_a_zip_or_a_folder_and_fails_on_a_hole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = locked()[0]
    record = advisory(versions=[first.version])
    record["affected"][0]["package"]["name"] = first.name
    (tmp_path / "PYSEC-1.json").write_text(json.dumps(record))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "PYSEC-1.json", "PYSEC-1.json")

    for place in (tmp_path, tmp_path / "all.zip"):
        assert main(["audit", str(place)]) == 1
        assert "PYSEC-1: it leaks" in capsys.readouterr().out
    (tmp_path / "PYSEC-1.json").write_text(json.dumps(advisory(versions=["0"])))
    assert main(["audit", str(tmp_path)]) == 0


def test_an_audit_without_data_says_that_it_was_not_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ADVISORIES", raising=False)
    assert main(["audit"]) == 0
    assert "NOT DONE: ADVISORIES is not set" in capsys.readouterr().out
    assert main(["audit", str(tmp_path)]) == 1, "a folder without advisories is a mistake"

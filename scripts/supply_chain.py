"""The locked dependencies as a software bill of materials (CycloneDX), and their audit against known vulnerabilities.

    python -m scripts.supply_chain sbom OUT.json
    python -m scripts.supply_chain audit [ADVISORIES]

ADVISORIES is OSV's export for PyPI (https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip), as the zip file
or as a folder of its JSON files; by default what the variable ADVISORIES names. No package on PyPI ships current
advisories, and the build has no network: without that data the audit says that it was not done, and ends with 0.
"""

import json
import os
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
LOCKS = ("run", "build", "dev")
"""What users install, what builds the wheel, what tests need."""
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Locked:
    """One pinned package."""

    name: str
    version: str
    hashes: tuple[str, ...]
    lock: str

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def locked(folder: Path = ROOT / "requirements") -> list[Locked]:
    """Every package of the lock files, once: the first lock that names it counts."""
    found: dict[tuple[str, str], Locked] = {}
    for lock in LOCKS:
        text = (folder / f"{lock}.txt").read_text().replace("\\\n", " ")
        for line in text.splitlines():
            if match := _PINNED.match(line):
                name = canonicalize_name(match[1])
                one = Locked(name, match[2], tuple(_HASH.findall(line)), lock)
                found.setdefault((name, one.version), one)
    return sorted(found.values(), key=lambda one: (one.name, one.version))


def bill(packages: Sequence[Locked], version: str) -> dict[str, Any]:
    """CycloneDX 1.5. Without a time stamp or serial number: the same locks give the same bytes."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"pkg:pypi/trotline@{version}",
                "name": "trotline",
                "version": version,
                "purl": f"pkg:pypi/trotline@{version}",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [_component(one) for one in packages],
        "dependencies": [
            {"ref": f"pkg:pypi/trotline@{version}", "dependsOn": [one.purl for one in packages if one.lock == "run"]}
        ],
    }


def _component(one: Locked) -> dict[str, Any]:
    # A hash for each file of a release; a bill has room for them as distributions.
    files = [{"type": "distribution", "url": one.purl}]
    if one.hashes:
        files[0]["hashes"] = [{"alg": "SHA-256", "content": value} for value in one.hashes]  # type: ignore[assignment]
    return {
        "type": "library",
        "bom-ref": one.purl,
        "name": one.name,
        "version": one.version,
        "purl": one.purl,
        "scope": "required" if one.lock == "run" else "excluded",
        "externalReferences": files,
        "properties": [{"name": "trotline:lock", "value": f"requirements/{one.lock}.txt"}],
    }


def advisories(place: Path) -> Iterator[dict[str, Any]]:
    """OSV records, out of a zip file or a folder."""
    if place.is_dir():
        for file in sorted(place.glob("*.json")):
            yield json.loads(file.read_bytes())
        return
    with zipfile.ZipFile(place) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                yield json.loads(archive.read(name))


def holes(packages: Sequence[Locked], records: Iterator[dict[str, Any]]) -> list[str]:
    """A line for every known vulnerability of a locked version."""
    by_name: dict[str, list[Locked]] = {}
    for one in packages:
        by_name.setdefault(one.name, []).append(one)
    found = []
    for record in records:
        if "withdrawn" in record:
            continue
        for affected in record.get("affected", ()):
            package = affected.get("package", {})
            if package.get("ecosystem") == "PyPI":
                for one in by_name.get(canonicalize_name(package.get("name", "")), ()):
                    if _is_affected(one.version, affected):
                        said = record.get("summary") or record.get("details", "")[:100]
                        found.append(f"{one.name} {one.version} (requirements/{one.lock}.txt): {record['id']}: {said}")
    return sorted(set(found))


def _is_affected(version: str, affected: dict[str, Any]) -> bool:
    if version in affected.get("versions", ()):
        return True
    ranges = (one for one in affected.get("ranges", ()) if one.get("type") == "ECOSYSTEM")
    return any(_within(Version(version), one.get("events", ())) for one in ranges)


def _within(version: Version, events: Sequence[dict[str, str]]) -> bool:
    """Is the version inside one of the ranges that the events open and close, in their order?"""
    inside = False
    for event in events:
        [(kind, text)] = list(event.items())[:1]
        try:
            at = Version("0" if text == "0" else text)
        except InvalidVersion:
            continue
        if kind == "introduced" and version >= at:
            inside = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


def audit(place: str) -> int:
    if not place or not Path(place).exists():
        given = f"{place} is not there" if place else "ADVISORIES is not set"
        print(f"audit NOT DONE: {given}; it takes OSV's export for PyPI (all.zip, or a folder of its files)")
        return 0
    packages = locked()
    records = list(advisories(Path(place)))
    if not records:
        print(f"audit NOT DONE: {place} has no advisory in it")
        return 1
    found = holes(packages, iter(records))
    newest = max(str(record.get("modified", "")) for record in records)
    against = f"{len(records):,} advisories, the newest of {newest[:10]}"
    print(f"audit: {len(packages)} packages against {against}: {len(found)} found")
    for line in found:
        print(f"  {line}")
    return 1 if found else 0


def main(words: Sequence[str]) -> int:
    match words:
        case ["sbom", out]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            packages = locked()
            file = Path(out)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(bill(packages, project["version"]), indent=1) + "\n")
            print(f"sbom: {out}, {len(packages)} packages")
            return 0
        case ["audit", *places]:
            return audit(places[0] if places else os.environ.get("ADVISORIES", ""))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

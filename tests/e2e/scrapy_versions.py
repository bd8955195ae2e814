"""The spiders of the tests on every version of Scrapy that the bridge supports, each in an environment of its own.

    python -m tests.e2e.scrapy_versions                 # all of them
    python -m tests.e2e.scrapy_versions 2.13.4 2.19.0   # these

An environment is a throw-away folder: this version of Scrapy and what it needs, before the packages of this one. It
needs an index of packages.
"""

import argparse
import asyncio
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e.scrapy_project import spiders
from tests.e2e.scrapy_running import both

VERSIONS = ("2.13.0", "2.13.4", "2.14.2", "2.15.2", "2.16.0", "2.17.0", "2.18.0", "2.19.0")
OLDER_TWISTED = (2, 14)
"""These and older versions need a Twisted of their time."""


def install(version: str, folder: Path) -> None:
    major, minor = map(int, version.split(".")[:2])
    wanted = [f"scrapy=={version}", *(["twisted<25.6"] if (major, minor) <= OLDER_TWISTED else [])]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-warn-conflicts"]
    subprocess.run([sys.executable, "-m", "pip", "install", *quiet, "--target", str(folder), *wanted], check=True)


async def differences(version: str, folder: Path) -> list[str]:
    """What is wrong with the bridge on this version; empty: nothing."""
    names = [kind.name for kind in spiders.ALL]
    packages = folder / "packages"
    install(version, packages)
    env = {"PYTHONPATH": str(packages)}
    plain, bridged = await both(folder, names, f"sqlite:{folder}/frontier.db", env=env)
    wrong = [] if f"Scrapy {version} started" in bridged.log else ["another version ran"]
    for name in names:
        if bridged.reasons.get(name) != "finished":
            wrong.append(f"{name} ended with {bridged.reasons.get(name)!r}")
        elif bridged.items.get(name) != plain.items.get(name) or not plain.items.get(name):
            wrong.append(f"{name}: {len(plain.items.get(name, []))} items, {len(bridged.items.get(name, []))} bridged")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    failed = 0
    for version in parser.parse_args().versions:
        with TemporaryDirectory(prefix="scrapy-version-") as folder:
            wrong = asyncio.run(differences(version, Path(folder)))
        failed += bool(wrong)
        same = f"{len(spiders.ALL)} spiders, the same items"
        print(f"Scrapy {version:8} {'; '.join(wrong) or same}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

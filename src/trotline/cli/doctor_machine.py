"""What `trotline doctor` checks of this machine: Python, packages, variables, disks, open files, the folder."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trotline.cli.doctor_check import Check
from trotline.cli.formatting import count, size

if TYPE_CHECKING:
    from trotline.config.settings import Settings

OLDEST_PYTHON = (3, 11)
LITTLE_SPACE = 1024**3
TOO_LITTLE_SPACE = 64 * 1024**2
TOO_FEW_FILES = 100
"""New files that a file system must have room for (inodes)."""
FILES_PER_SLOT = 2
"""A connection and what resolving its name takes."""
OTHER_FILES = 64
_PACKAGES = ("aiohttp", "selectolax", "can_ada", "msgspec", "xxhash", "protego", "isal", "brotli", "zstandard", "rich")


def python() -> Check:
    version = sys.version.split()[0]
    if sys.version_info < OLDEST_PYTHON:
        return Check(what="python", state="fail", found=version, advice="Trotline needs Python 3.11 or newer.")
    return Check(what="python", state="ok", found=f"{version} ({sys.executable})")


def packages() -> Iterator[Check]:
    import importlib
    import importlib.util

    missing = []
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            missing.append(f"{name}: {error}")
    for text in missing:
        yield Check(
            what="packages",
            state="fail",
            found=text,
            advice="Install it again, in your clone of Trotline: pip install --force-reinstall .",
        )
    if not missing:
        from importlib.metadata import version

        yield Check(what="packages", state="ok", found=f"trotline {version('trotline')} and all it needs")
    if importlib.util.find_spec("pyarrow") is None:
        yield Check(
            what="parquet",
            state="warn",
            found="pyarrow is not installed",
            advice="For .parquet, in your clone of Trotline: pip install '.[parquet]'",
        )


def unknown_variables_set() -> Iterator[Check]:
    from trotline.config.settings import unknown_variables

    for name in unknown_variables(os.environ):
        yield Check(
            what="environment", state="warn", found=f"{name} is not a setting of Trotline", advice="It is not used."
        )


def disks(places: Iterable[Path]) -> Iterator[Check]:
    """One line for each file system that a run writes to: the folder, and the files of frontier, sink and archive."""
    seen = set[int]()
    for place in places:
        folder = next(parent for parent in (place.absolute(), *place.absolute().parents) if parent.is_dir())
        if (device := folder.stat().st_dev) not in seen:
            seen.add(device)
            yield _disk(folder)


def _disk(folder: Path) -> Check:
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    # File systems without a limit of files report none.
    if found.f_files and found.f_favail < TOO_FEW_FILES:
        left = f"room for {count(found.f_favail, 'more file')} at {folder}"
        return Check(what="disk", state="fail", found=left, advice="Remove some files before a run.")
    if free < TOO_LITTLE_SPACE:
        advice = "Free some space before a run."
        return Check(what="disk", state="fail", found=f"{size(free)} free at {folder}", advice=advice)
    if free < LITTLE_SPACE:
        advice = "Enough for a small crawl only."
        return Check(what="disk", state="warn", found=f"{size(free)} free at {folder}", advice=advice)
    return Check(what="disk", state="ok", found=f"{size(free)} free at {folder}")


def open_files(settings: "Settings | None") -> Check:
    import resource

    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    slots = settings.slots if settings else 16
    needed = slots * FILES_PER_SLOT + OTHER_FILES
    if allowed < needed:
        return Check(
            what="open files",
            state="fail",
            found=f"{count(allowed)} allowed, about {count(needed)} needed for {slots} slots",
            advice=f"Raise the limit (ulimit -n {needed}), or use fewer slots.",
        )
    return Check(what="open files", state="ok", found=f"{count(allowed)} allowed per process")


def folder_writable(folder: Path) -> Check:
    place = folder / ".trotline" if (folder / ".trotline").is_dir() else folder
    if os.access(place, os.W_OK | os.X_OK):
        return Check(what="folder", state="ok", found=f"{place} can be written")
    return Check(
        what="folder",
        state="fail",
        found=f"{place} cannot be written",
        advice="Go to another folder, or change its owner.",
    )

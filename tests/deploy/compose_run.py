"""`make containers`, `python -m tests.deploy.compose_run`: build the image, run deploy/compose.yaml, scale it.

Podman and podman-compose as root, in a network, process and mount namespace of their own: bridges, firewall rules and
processes are gone when it ends. The first run makes the base images (two minutes); they stay in build/containers.

Podman is not a service that Trotline needs: where it is missing, tests/deploy/test_compose_run.py is skipped, also in
CI.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from tests.deploy import compose_checks
from tests.deploy.compose_fleet import Fleet
from tests.deploy.engine import BASE, IMAGE, SERVERS, Engine, missing_tools
from tests.deploy.tools import ROOT

CACHE = ROOT / "build" / "containers"
_READY = CACHE / "ready"
_NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")


def prepare(engine: Engine, *, full: bool = False) -> None:
    """Images that are there already are used again; ours is built from the present sources."""
    for name, make in ((BASE, engine.make_base), *((each, None) for each in SERVERS), (IMAGE, engine.make_image)):
        if name != IMAGE and engine.has(name):
            continue
        started = time.monotonic()
        if make is None:
            engine.make_server(name)
        else:
            make()
        print(f"{name}: built in {time.monotonic() - started:.0f} s", flush=True)
    _READY.touch()
    if full:
        compose_checks.check_full(engine)


def is_prepared() -> bool:
    """Are the tools and the slow images there? Then a run takes about two minutes."""
    return os.geteuid() == 0 and not missing_tools() and _READY.exists()


def run_inside(engine: Engine) -> None:
    """The scenario, in the namespaces."""
    engine.run("ip", "link", "set", "lo", "up")
    engine.clear()
    fleet = Fleet(engine, engine.folder / "deploy")
    try:
        fleet.up()
        for check in compose_checks.ALL:
            check(fleet)
    except BaseException:
        for name in engine.run("podman", "ps", "--all", "--format", "{{.Names}}").stdout.split():
            ended = engine.run("podman", "logs", "--tail", "15", name, check=False)
            print(f"--- {name}\n{ended.stdout}{ended.stderr}", file=sys.stderr)
        raise
    finally:
        engine.clear()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.deploy.compose_run", description=__doc__)
    parser.add_argument(
        "--full", action="store_true", help="also build the image with all extras, and import them there"
    )
    parser.add_argument("--part", choices=("build", "run"), help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    wanted = ([] if os.geteuid() == 0 else ["root"]) + missing_tools()
    if wanted:
        print(f"it needs {', '.join(wanted)}; as root, `make containers` installs what is missing", file=sys.stderr)
        return 2
    if asked.part == "run":
        run_inside(Engine(CACHE))
    elif asked.part == "build":
        prepare(Engine(CACHE), full=asked.full)
    else:
        return run_parts(["--full"] if asked.full else [])
    return 0


def run_parts(options: Sequence[str]) -> int:
    """Each in namespaces of its own: the build needs the machine's network, the containers must not change it."""
    started = time.monotonic()
    words = [sys.executable, "-m", "tests.deploy.compose_run", *options, "--part"]
    code = subprocess.run(["unshare", "--mount", *words, "build"], cwd=ROOT, check=False).returncode
    if code == 0:
        code = subprocess.run(["unshare", *_NAMESPACES, *words, "run"], cwd=ROOT, check=False).returncode
    print(f"{'all right' if code == 0 else f'failed ({code})'} after {time.monotonic() - started:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())

"""A fleet of two workers: a job is started, both take part in it, and this ends with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    spider, *places = sys.argv[1:]
    program = str(Path(sys.executable).with_name("trotline"))
    frontier = places[: places.index("--sink")]
    subprocess.run([program, "start", spider, "--detach", "--allow-private", *frontier], check=True)
    work = [program, "work", spider, "--until-finished", "--allow-private", "--slots", "32", "--quiet", *places]
    workers = [subprocess.Popen(work) for _ in range(2)]
    return max(worker.wait() for worker in workers)


if __name__ == "__main__":
    sys.exit(main())

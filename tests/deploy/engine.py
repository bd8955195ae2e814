"""Podman on a machine that reaches no image registry: the base image is made by debootstrap, and everything of it
(images, containers, networks) is in one folder.

The stand-ins have the names of the real images, so that deploy/Dockerfile and deploy/compose.yaml are used unchanged.
They prove our files, not the images of Python, Valkey and PostgreSQL.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.deploy.tools import DEPLOY, ROOT

TOOLS = ("podman", "buildah", "runc", "debootstrap", "unshare", "ip")
SUITE = "trixie"
BASE = "docker.io/library/python:3.13-slim"
SERVERS = {"docker.io/valkey/valkey:8": "valkey", "docker.io/library/postgres:17": "postgres"}
IMAGE = "localhost/trotline:latest"
_IMAGES = Path(__file__).parent / "images"
_PYTHON = "python3,python3-venv,python3-pip,ca-certificates"
_PIP_KEYS = ("index-url", "trusted-host", "cert", "default-timeout")


def missing_tools() -> list[str]:
    return [name for name in TOOLS if shutil.which(name) is None]


class Engine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "networks").mkdir(exist_ok=True)
        # runc and these limits: what works without systemd and inside of another container, too.
        (folder / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\n'
            f'[engine]\nruntime = "{shutil.which("runc")}"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
            f'[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "{folder}/networks"\n'
        )
        self.environment = {
            **os.environ,
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        }
        if not (folder / "storage.conf").exists():
            self._choose_driver()

    def _choose_driver(self) -> None:
        for driver in ("overlay", "vfs"):
            (self.folder / "storage.conf").write_text(
                f'[storage]\ndriver = "{driver}"\ngraphroot = "{self.folder}/{driver}"\nrunroot = "{self.folder}/run"\n'
            )
            if self.run("podman", "info", check=False).returncode == 0:
                return
        raise RuntimeError("podman works with neither the overlay nor the vfs driver")

    def run(self, *words: str | Path, check: bool = True, timeout: float = 900) -> "subprocess.CompletedProcess[str]":
        """Its output; an error has all of it."""
        command = list(map(str, words))
        ended = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=timeout
        )
        if check and ended.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
        return ended

    def has(self, image: str) -> bool:
        return self.run("podman", "image", "exists", image, check=False).returncode == 0

    def size(self, image: str) -> int:
        return int(self.run("podman", "image", "inspect", "--format", "{{.Size}}", image).stdout)

    # Images

    def make_base(self) -> None:
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        self.run("debootstrap", "--variant=minbase", f"--include={_PYTHON}", SUITE, root, _mirror())
        for name in ("python", "pip"):
            (root / "usr/local/bin" / name).symlink_to(f"/usr/bin/{name}3")
        for folder in ("var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(root / folder)
            (root / folder / "partial").mkdir(parents=True)
        self.run("tar", "-C", root, "-cf", self.folder / "root.tar", ".")
        self.run("podman", "import", self.folder / "root.tar", BASE)
        (self.folder / "root.tar").unlink()
        shutil.rmtree(root)

    def make_server(self, image: str) -> None:
        self.build(image, _IMAGES / f"{SERVERS[image]}.Dockerfile", _IMAGES)

    def make_image(self, image: str = IMAGE, target: str = "trotline") -> None:
        self.build(image, DEPLOY / "Dockerfile", ROOT, "--target", target)

    def build(self, image: str, file: Path, context: Path, *more: str) -> None:
        # The docker format has health checks, OCI's has none.
        words = ["--isolation", "chroot", "--network", "host", "--pull-never", "--layers", "--format", "docker"]
        self.run("buildah", "bud", *words, *self._pip(), "--file", file, "--tag", image, *more, context)

    def _pip(self) -> list[str]:
        """This machine's package index and certificates: mounted while the image is built, and not a part of it."""
        listed = self.run(sys.executable, "-m", "pip", "config", "list").stdout
        found = {}
        for line in listed.splitlines():
            name, _, value = line.partition("=")
            key = name.rpartition(".")[2]
            if key in _PIP_KEYS:
                found[key] = tomllib.loads(f"x = {value}")["x"]
        file = self.folder / "pip.conf"
        file.write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in found.items()))
        mounts = [f"{file}:/etc/pip.conf:ro"]
        if cert := found.get("cert"):
            mounts.append(f"{cert}:{cert}:ro")
        return [word for mount in mounts for word in ("--volume", mount)]

    def clear(self) -> None:
        """No containers, volumes and networks; images stay."""
        for _ in range(5):
            # Containers that others depend on are refused until these are gone.
            if self.run("podman", "rm", "--all", "--force", "--time", "0", check=False).returncode == 0:
                break
        self.run("podman", "volume", "prune", "--force", check=False)
        self.run("podman", "network", "prune", "--force", check=False)
        self.run("podman", "image", "prune", "--force", check=False)


def _mirror() -> str:
    """The Debian mirror that apt uses on this machine."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=True
    ).stdout.split()
    found = [uri for uri in listed if uri.rstrip("/").endswith("/debian")]
    if not found:
        raise RuntimeError("apt has no Debian mirror: the base image cannot be made")
    return found[0]

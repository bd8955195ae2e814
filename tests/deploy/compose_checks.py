"""What a fleet of containers promises: one function for each promise, in the order in which they are checked."""

import http.client
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.deploy.compose_fleet import PRODUCTS, WITHIN, Fleet, expect
from tests.deploy.engine import BASE, IMAGE, Engine
from trotline.testing.demo import truth_of

IN_A_PHASE = 15
"""Pages that are done with each number of workers."""
SLOW, FAST = "3/s", "100/s"
"""Pages of the job while it is scaled, and at its end: a busy machine needs long to start containers."""
MOST_ADDED = 78_000_000
"""Bytes that the image may add to its base. python:3.13-slim has about 120 MB: 200 in all."""
SPIDER = "/spiders/shop.py"


def check_image(fleet: Fleet) -> None:
    engine = fleet.engine
    added = engine.size(IMAGE) - engine.size(BASE)
    print(f"the image adds {added / 1e6:.0f} MB to its base")
    expect(added <= MOST_ADDED, f"the image adds {added:,} bytes to its base, more than {MOST_ADDED:,}")


def check_start(fleet: Fleet) -> None:
    """`up`, and all five workers wait for a job."""
    started = time.monotonic()
    while fleet.inside("coordinator", "trotline", "doctor", SPIDER, check=False).returncode:
        expect(time.monotonic() - started < WITHIN, fleet.call("doctor", SPIDER, check=False))
        time.sleep(0.5)
    print(f"ready {time.monotonic() - started:.0f} s after `up`")
    expect(len(fleet.running()) == 5, "compose.yaml starts five workers")


def check_hardening(fleet: Fleet) -> None:
    for service in ("worker", "coordinator"):
        expect(fleet.inside(service, "id", "-u").stdout.strip() == "10001", f"{service} runs as user 10001")
        written = fleet.inside(service, "touch", "/opt/trotline/x", check=False)
        expect("Read-only file system" in written.stderr, f"{service} has a read-only root: {written.stderr}")
        expect(fleet.inside(service, "cat", "/proc/1/comm").stdout.strip() == "tini", f"{service}: tini is process 1")
        status = fleet.inside(service, "cat", "/proc/1/status").stdout
        expect("CapBnd:\t0000000000000000" in status, f"{service} has no capabilities: {status}")
        expect("NoNewPrivs:\t1" in status, f"{service} cannot gain rights: {status}")
    routes = fleet.inside("valkey", "cat", "/proc/net/route").stdout.splitlines()[1:]
    expect(all(route.split()[1] != "00000000" for route in routes), f"valkey has a way out: {routes}")


def check_scaling(fleet: Fleet) -> None:
    """With 5, 2, 6 and 1 workers; one of the six is killed."""
    fleet.call("start", SPIDER, "--detach")
    fleet.call("pace", "--host", "shop:8010", SLOW)
    for workers in (5, 2, 6, 1):
        took = fleet.scale(workers)
        seen = fleet.until(lambda seen, n=workers: live(seen) == n, f"{workers} workers at work")  # type: ignore[misc]
        print(f"workers: {workers}, after {took:.1f} s; {seen['done']} of {seen['admitted']} pages done", flush=True)
        if workers == 6:
            kill_one(fleet)
        done = seen["done"] + IN_A_PHASE
        seen = fleet.until(lambda seen, n=done: seen["done"] >= n, f"more pages with {workers} workers")  # type: ignore[misc]
        expect(seen["waiting"] > 0, f"the job is not over yet: {seen}")
    fleet.call("pace", "--host", "shop:8010", FAST)
    fleet.until(lambda _: fleet.job()["finished_at"] is not None, "the job ends")


def live(seen: dict[str, Any]) -> int:
    """Workers that have sent a heartbeat in the last seconds."""
    return sum(worker["silent_for"] < 8 for worker in seen["crew"])


def kill_one(fleet: Fleet) -> None:
    """As the kernel does when memory runs out. The container comes back by its restart policy."""
    name = fleet.running()[2]
    os.kill(int(fleet.state(name, "{{.State.Pid}}")), signal.SIGKILL)
    started = time.monotonic()
    while fleet.state(name, "{{.RestartCount}} {{.State.Status}}") != "1 running":
        expect(time.monotonic() - started < 20, f"{name} is started again")
        time.sleep(0.2)


def check_rows(fleet: Fleet) -> None:
    """Nothing is lost, nothing is doubled, and the workers wait for the next job."""
    lines = [json.loads(line) for line in fleet.call("export", "shop").splitlines()]
    rows = {row["sku"]: (row["title"], row["price"]) for row in lines}
    truth = truth_of(PRODUCTS)
    expect(len(lines) == len(rows), f"{len(lines)} rows for {len(rows)} products")
    expect(rows == truth, f"{len(truth)} products, {len(rows)} rows, {len(truth.items() - rows.items())} lost or wrong")
    seen = fleet.look()
    expect((seen["waiting"], seen["leased"], seen["dead"]) == (0, 0, 0), f"all tasks are done: {seen}")
    query = "SELECT count(*), count(DISTINCT url) FROM trotline.visits WHERE outcome = 'done'"
    told = fleet.inside("postgres", "psql", "-U", "trotline", "-d", "trotline", "-Atc", query).stdout.strip()
    visits, pages = map(int, told.split("|"))
    expect(pages == seen["done"], f"{pages} pages were visited, {seen['done']} are done")
    # Only what the killed worker had not settled may be visited once more.
    expect(visits - pages <= 16, f"{visits} visits of {pages} pages")
    print(f"{len(rows)} rows, all right; {pages} pages, {visits - pages} visited twice after the kill")
    [worker] = fleet.running()
    expect(fleet.state(worker, "{{.State.Status}} {{.RestartCount}}") == "running 0", "the last worker waits for a job")


def check_health(fleet: Fleet) -> None:
    for service in fleet.services:
        if service in ("worker", "coordinator") and not fleet.has_metrics:
            print(f"{service}: health is not checked, as `--metrics` is not there yet")
            continue
        ended = fleet.engine.run("podman", "healthcheck", "run", f"trotline_{service}_1", check=False)
        expect(ended.returncode == 0, f"{service} is healthy: {ended.stdout} {ended.stderr}")
    if not fleet.has_metrics:
        return
    # A suspended process does not answer.
    coordinator = int(fleet.state("trotline_coordinator_1", "{{.State.Pid}}"))
    [child] = Path(f"/proc/{coordinator}/task/{coordinator}/children").read_text().split()
    os.kill(int(child), signal.SIGSTOP)
    ended = fleet.engine.run("podman", "healthcheck", "run", "trotline_coordinator_1", check=False)
    os.kill(int(child), signal.SIGCONT)
    expect(ended.returncode == 1, f"a suspended coordinator is unhealthy: {ended}")


def check_web(fleet: Fleet) -> None:
    """The published port, as a browser on this machine sees it."""
    if not fleet.has_web:
        print("the dashboard is not checked, as `trotline web` is not there yet")
        return
    token = (fleet.folder / "secrets" / "token_view").read_text().strip()
    allowed = {"Authorization": f"Bearer {token}"}
    asked = [({}, 401), (allowed, 200), ({**allowed, "Host": "evil.example"}, 421)]
    for headers, wanted in asked:
        connection = http.client.HTTPConnection("127.0.0.1", 8321, timeout=20)
        connection.request("GET", "/api/v1/jobs", headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        expect(answer.status == wanted, f"the dashboard answers {answer.status}, not {wanted}: {body[:500]}")
        expect(("shop-1" in body) is (wanted == 200), f"the job is shown: {body[:500]}")


def check_secrets(fleet: Fleet) -> None:
    """Passwords are in files: not in the containers' settings, not in their logs, not on a command line."""
    folder = fleet.folder / "secrets"
    secrets = {
        "postgres": (folder / "postgres_password").read_text().strip(),
        "valkey": (folder / "frontier_url").read_text().partition("trotline:")[2].partition("@")[0],
        "view": (folder / "token_view").read_text().strip(),
    }
    names = fleet.engine.run("podman", "ps", "--all", "--format", "{{.Names}}").stdout.split()
    shown = fleet.engine.run("podman", "inspect", *names).stdout
    for name in names:
        ended = fleet.engine.run("podman", "logs", name)
        shown += ended.stdout + ended.stderr
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            shown += line.read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            # It has ended meanwhile.
            continue
    for name, secret in secrets.items():
        expect(len(secret) == 64 and secret not in shown, f"the secret of {name} is shown")


ALL_EXTRAS = (
    "import aiobotocore, html_to_markdown, opentelemetry.sdk, PIL.Image, pyarrow.parquet, pydantic, rensa, wreq"
)


def check_full(engine: Engine) -> None:
    image = "localhost/trotline:full"
    engine.make_image(image, "full")
    engine.run("podman", "run", "--rm", "--network", "none", "--entrypoint", "python", image, "-c", ALL_EXTRAS)
    print(f"with all extras the image adds {(engine.size(image) - engine.size(BASE)) / 1e6:.0f} MB to its base")


ALL = (check_image, check_start, check_hardening, check_scaling, check_rows, check_health, check_web, check_secrets)

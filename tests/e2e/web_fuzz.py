"""The API under random requests that its own document describes, and some that it does not (schemathesis).

    python -m tests.e2e.web_fuzz URL [--token TOKEN] [--cases N]    the long run, against a server of your own

Only loopback addresses are asked.
"""

import argparse
import sys
from collections import Counter
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

SEED = 7
LEFT_OUT = "events"
"""Streams do not end."""


@schemathesis.serializer("application/x-ndjson")
def _lines(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def fuzz(url: str, token: str = "", cases: int = 20) -> Counter[tuple[str, int]]:
    """How often each operation was answered with which status. AssertionError names the first answer that is wrong: a
    status of 500, one that is not described, or a body that does not fit its description."""
    assert urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1"), "only loopback addresses"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    described = requests.get(f"{url}/api/v1/openapi.json", headers=headers, timeout=10).json()
    schema = schemathesis.openapi.from_dict(described)
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    load_all_checks()
    checks = [CHECKS.get_one(name) for name in WANTED]
    found: Counter[tuple[str, int]] = Counter()
    session = requests.Session()
    session.headers.update(headers)
    jobs = session.get(f"{url}/api/v1/jobs", timeout=10).json()["jobs"]
    for result in schema.get_all_operations():
        operation = result.ok()
        if not operation.path.endswith(LEFT_OUT):
            _fuzz(operation, _Asking(url, session, jobs[0]["job"], checks, found), cases)
    return found


class _Asking(NamedTuple):
    url: str
    session: requests.Session
    job: str
    checks: list[Any]
    found: Counter[tuple[str, int]]


def _fuzz(operation: Any, asking: _Asking, cases: int) -> None:
    @hypothesis.seed(SEED)
    @hypothesis.settings(
        max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=[hypothesis.Phase.generate],
    )  # fmt: skip
    @hypothesis.given(case=operation.as_strategy(), known=st.integers(0, 3))
    def ask(case: schemathesis.Case, known: int) -> None:
        if known and operation.method != "delete" and "job" in (case.path_parameters or {}):
            # A random name is hardly ever a job's.
            case.path_parameters["job"] = asking.job
        response = case.call(base_url=asking.url, session=asking.session, timeout=60)
        asking.found[operation.label, response.status_code] += 1
        case.validate_response(response, checks=asking.checks)

    ask()


WANTED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--token", default="")
    parser.add_argument("--cases", type=int, default=1000)
    asked = parser.parse_args()
    for (label, status), number in sorted(fuzz(asked.url.rstrip("/"), asked.token, asked.cases).items()):
        print(f"{number:>8}  {status}  {label}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

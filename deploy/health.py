"""Health check of a Trotline container: exit code 0 if it is healthy.

With HEALTH_PORT, the process must answer HTTP there within three seconds: its event loop runs. Any status below 500 is
an answer; a page that asks for a token is one, too. Without it, the main process must exist and not be suspended.

It does not ask whether Redis or PostgreSQL answer: workers wait for these, and a restart would not help.
"""

import http.client
import os
import sys
from pathlib import Path

TIMEOUT = 3.0
INIT = 1
"""The process whose child we look at: tini."""
_SUSPENDED_OR_GONE = "TtZXx"


def main() -> int:
    port = os.environ.get("HEALTH_PORT", "")
    trouble = _answer(int(port), os.environ.get("HEALTH_PATH", "/")) if port else _state()
    if trouble:
        print(trouble, file=sys.stderr)
    return 1 if trouble else 0


def _answer(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"port {port} does not answer: {type(error).__name__}: {error}"
    finally:
        connection.close()
    return "" if status < 500 else f"port {port} answers with status {status}"


def _state(processes: Path = Path("/proc")) -> str:
    for status in processes.glob("[0-9]*/stat"):
        try:
            text = status.read_text()
        except OSError:
            # It has ended meanwhile.
            continue
        # The name is in parentheses and may have spaces and parentheses itself.
        state, parent = text.rpartition(")")[2].split()[:2]
        if int(parent) == INIT and state not in _SUSPENDED_OR_GONE:
            return ""
    return "no running process"


if __name__ == "__main__":
    sys.exit(main())

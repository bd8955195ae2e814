"""What is said of a job whose entry or keys cannot be read."""

import shlex


def way_out(job_id: str) -> tuple[str, str]:
    return f"job {job_id}: its entry cannot be read", f"forget it: trotline jobs --forget {shlex.quote(job_id)}"


def in_a_line(job_id: str) -> str:
    return "; ".join(way_out(job_id))

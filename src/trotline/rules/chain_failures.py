"""Chains: the reason of steps that are buried because an earlier step of their chain failed."""

from collections.abc import Collection, Mapping

from trotline.rules import redaction

STEP = "chain: step "
"""The start of such a reason."""
FAILED = " failed: "
TALLY = "dead: chain: an earlier step failed"
"""Their counter: with the URL of the step a job with many chains would have too many."""
LONGEST_URL = 500


def failed(url: str, why: str) -> str:
    """The reason of the steps that waited for the one with this URL."""
    return f"{STEP}{url[:LONGEST_URL]}{FAILED}{why}"


def shown(why: str, keys: Collection[str]) -> str:
    """A reason for output: secrets in the step's URL are redacted. `keys`: the job's additional query keys."""
    if not why.startswith(STEP):
        return why
    url, found, cause = why.removeprefix(STEP).partition(FAILED)
    return f"{STEP}{redaction.url(url, keys)}{found}{cause}"


def shown_counts(counts: Mapping[str, int], keys: Collection[str]) -> dict[str, int]:
    """Counts by reason for output."""
    found: dict[str, int] = {}
    for why, count in counts.items():
        name = shown(why, keys)
        found[name] = found.get(name, 0) + count
    return found

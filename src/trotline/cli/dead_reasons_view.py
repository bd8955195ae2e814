"""Dead tasks and rejected records, as in a summary: reason, number, example, command."""

from collections.abc import Mapping, Sequence

import msgspec

from trotline.cli.formatting import by_number, count, safe, safe_url
from trotline.cli.suggested_commands import same
from trotline.commands.dead_reasons import BAD_RECORD, MOST, Burial, of_tasks_and_records
from trotline.rules.proxy_reasons import grouped, groups

_LONGEST_URL = 100
_LONGEST_SAID = 100


def headline(dead: int, rejected: int) -> str:
    """How a job finished that left something behind."""
    parts = []
    if dead:
        parts.append(f"{count(dead)} {'task is' if dead == 1 else 'tasks are'} dead")
    if rejected:
        parts.append(f"{count(rejected)} {'record was' if rejected == 1 else 'records were'} rejected")
    return "finished, but " + " and ".join(parts or ["some tasks are dead"])


def counted(dead: int, rejected: int) -> str:
    """`6 dead, 3 rejected records`: tasks and records are never added up."""
    parts = [f"{count(dead)} dead"] if dead or not rejected else []
    return ", ".join([*parts, *([count(rejected, "rejected record")] if rejected else [])])


def tables(reasons: Mapping[str, int], most: int) -> list[str]:
    """Reasons with their numbers, the most frequent first: of dead tasks, then of rejected records."""
    rows: list[str] = []
    for title, chosen in zip(("dead", "rejected records"), of_tasks_and_records(reasons), strict=True):
        if not chosen:
            continue
        chosen = grouped(chosen)
        rows += ["", title, *(f"{count(number):>9}  {safe(why)}" for why, number in by_number(chosen, most))]
        if len(chosen) > most:
            rows.append(f"{'':>9}  and {count(len(chosen) - most, 'other reason')}")
    return rows


def lines(burials: Sequence[Burial]) -> list[str]:
    burials = _grouped(burials)
    shown = burials[:MOST]
    width = max((len(count(burial.count)) for burial in shown), default=0)
    rows = []
    for burial in shown:
        rows.append(f"{count(burial.count):>{width}}  {safe(burial.why.removeprefix(BAD_RECORD))}")
        rows += [f"{'':>{width}}  {text}" for text in _example(burial)]
    if len(burials) > len(shown):
        others = burials[len(shown) :]
        number = sum(burial.count for burial in others)
        rows.append(f"{count(number):>{width}}  for {count(len(others), 'other reason')}")
    return rows


def _grouped(burials: Sequence[Burial]) -> list[Burial]:
    """Those that differ only in their proxy are one, with an example of the most frequent one."""
    by_why = {burial.why: burial for burial in burials}
    numbers = {why: burial.count for why, burial in by_why.items()}
    found = [
        msgspec.structs.replace(by_why[reasons[0]], why=text, count=sum(numbers[why] for why in reasons))
        for text, reasons in groups(numbers).items()
    ]
    return sorted(found, key=lambda burial: -burial.count)


def _example(burial: Burial) -> list[str]:
    if not burial.url:
        return []
    rows = [f"such as {safe_url(burial.url, _LONGEST_URL)}"]
    return [*rows, safe(burial.said, _LONGEST_SAID)] if burial.said else rows


def steps(spider: str, command: str, dead: int, rejected: int) -> list[tuple[str, str]]:
    """(what for, command)."""
    only_records = ["--why", BAD_RECORD.rstrip(": ")]
    found = []
    if dead:
        found.append(("the dead", same("dead", spider, command=command)))
    if rejected:
        found.append(("rejected", same("dead", spider, *only_records, command=command)))
    if found:
        chosen = [] if dead else only_records
        revive = same("dead", spider, *chosen, "--revive", command=command)
        found.append(("revive", f"{revive} && {command}"))
    return found

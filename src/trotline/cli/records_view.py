"""How many records there are: what handlers found, and what the sink holds by its own count."""

from trotline.cli.formatting import count, safe
from trotline.config.backend_urls import shown
from trotline.model.row_counts import Stored

_MOST_KINDS = 8


def record_counts(found: int, stored: Stored | None) -> str:
    """While a job runs: `120 new, 3 changed`; `123 found` where the sink cannot be asked."""
    return f"{count(found)} found" if stored is None else _parts(stored)


def record_lines(found: int, stored: Stored | None, sink: str) -> list[str]:
    """At the end: how many rows there are and how that came; the kinds of rows, if there are several."""
    place = safe(shown(sink))
    if not found and (stored is None or not stored.rows):
        return ["0"]
    if stored is None:
        return [f"{count(found)} found, sent to {place}"]
    if found and not handed_over(stored):
        return [f"{count(found)} found, none of them in {place}: do the workers store elsewhere?"]
    if stored.rows is None:
        return [f"{_parts(stored)} in {place} (too many rows to count)"]
    total = sum(stored.rows.values())
    plain = total == stored.new and not stored.changed and not stored.again
    return [f"{count(total)} in {place}" + ("" if plain else f": {_parts(stored)}"), *_kinds(stored.rows)]


def total(found: int, stored: Stored | None) -> int:
    """The one number for machines: rows in the sink now; what was found, if they were not counted."""
    if stored is None or (found and not handed_over(stored)):
        return found
    return handed_over(stored) if stored.rows is None else sum(stored.rows.values())


def handed_over(stored: Stored) -> int:
    return stored.new + stored.changed + stored.again


def _parts(stored: Stored) -> str:
    parts = [f"{count(stored.new)} new"]
    if stored.changed:
        parts.append(f"{count(stored.changed)} changed")
    if stored.again:
        parts.append(f"{count(stored.again)} seen again")
    return ", ".join(parts)


def _kinds(rows: dict[str, int]) -> list[str]:
    if len(rows) < 2:
        return []
    ordered = sorted(rows.items(), key=lambda item: -item[1])
    parts = [f"{count(number)} {safe(kind, 40)}" for kind, number in ordered[:_MOST_KINDS]]
    if len(ordered) > _MOST_KINDS:
        parts.append(f"and {count(len(ordered) - _MOST_KINDS, 'other kind')}")
    return [", ".join(parts)]

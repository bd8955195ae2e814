"""Warnings to the author from the counters of a job: empty fields, selectors without matches."""

from collections.abc import Mapping

from trotline.model.record_row import whole

FIELD_EMPTY = "field empty: "
FIELD_FILLED = "field filled: "
FOLLOW_EMPTY = "follow empty: "
FOLLOW_MATCHED = "follow matched: "
KIND_RECORDS = "kind records: "
FIELD_SET = "field set: "
FACTS = (FIELD_EMPTY, FIELD_FILLED, FOLLOW_EMPTY, FOLLOW_MATCHED, KIND_RECORDS, FIELD_SET)
"""Prefixes of the counters that are only facts for these warnings, and for the coverage of fields."""
OTHERS = "others"
"""Name of merged counters."""
_LONGEST = 80
BETWEEN = " / "


def label(place: str, name: str = "") -> str:
    """A field of a kind, or a selector of a route, within the length of a counter's name; without `name`, the kind as
    it begins such a label."""
    return whole((f"{place}{BETWEEN}{name}" if name else place)[:_LONGEST])


def warnings(tallies: Mapping[str, int]) -> list[str]:
    """Fields that were empty in all records, selectors of `page.follow` that matched on no page."""
    found = []
    for field in _never(tallies, FIELD_EMPTY, FIELD_FILLED):
        kind, _, name = field.partition(BETWEEN)
        found.append(f"{kind}: field {name!r} is empty in all records")
    for selector in _never(tallies, FOLLOW_EMPTY, FOLLOW_MATCHED):
        route, _, query = selector.partition(BETWEEN)
        found.append(f"{route}: page.follow({query!r}) matched nothing on any page")
    return found


def _never(tallies: Mapping[str, int], empty: str, full: str) -> list[str]:
    """Labels that were only ever empty. None if counters were merged: then it is unknown."""
    if tallies.get(full + OTHERS):
        return []
    seen = [name.removeprefix(empty) for name in tallies if name.startswith(empty)]
    return sorted(each for each in seen if each != OTHERS and full + each not in tallies)
